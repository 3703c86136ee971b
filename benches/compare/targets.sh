#!/usr/bin/env bash
# Builds the targets of `make compare`: libraries of Debian's source packages, file by file, with the
# harness of benches/compare/harness or benches/targets.
#
#   benches/compare/targets.sh --list [tuning | judging]     prints the names, the four of QUICK=1 first
#   benches/compare/targets.sh FOLDER NAME…
#
# Leaves FOLDER/NAME (the program), FOLDER/NAME-seeds (few and small), FOLDER/NAME-ordinary (files of some KiB, of
# most targets), FOLDER/NAME.dict and FOLDER/NAME.source (package and version). CC, CFLAGS and ENGINE are those of
# benches/targets/build.sh. A new target is a function here, a harness, and its name in one of the two sets.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
sources=${CARGO_TARGET_DIR:-$root/target}/bench-sources
CC=${CC:-$root/target/release/ffuzz-cc}
CFLAGS=${CFLAGS:--O2 -g}
ENGINE=${ENGINE--fsanitize=fuzzer}
# The search is tuned on these; the first four are those of QUICK=1.
tuning=(cmark libpng lcms2 expat brotli bzip2 cares cjson exif freetype giflib lua mspack pcre2 sqlite tasn1 tiff yaml zlib)
# And judged on these: nobody looks at what a fuzzer does with one of them, only at the edges in the end.
judging=(capstone demangle flac flatbuffers harfbuzz jq libconfig libxmp nanosvg plist tcpdump zstd)
targets=("${tuning[@]}" "${judging[@]}")

if [[ ${1:-} == --list ]]; then
  case ${2:-} in
    '') printf '%s\n' "${targets[@]}" ;;
    tuning) printf '%s\n' "${tuning[@]}" ;;
    judging) printf '%s\n' "${judging[@]}" ;;
    *) echo "no set $2: tuning or judging" >&2; exit 2 ;;
  esac
  exit
fi
(($# >= 2)) || { sed -n '2,11s/^# \{0,1\}//p' "$0" >&2; exit 2; }
mkdir -p "$1" "$sources"
out=$(cd "$1" && pwd)
shift
harnesses=$here/harness
# shellcheck source-path=SCRIPTDIR
. "$here/../targets/common.sh"

# A header of the target's own: config NAME FILE <text; prints the folder it is in.
config() {
  mkdir -p "$out/$1-config"
  cat >"$out/$1-config/$2"
  echo "$out/$1-config"
}

# Options for target NAME that take FUZZING_BUILD_MODE…, which two of the compilers define, from all: else the others'
# programs, and that which counts the edges, would do something else.
plain() {
  echo "-include $(config "$1" plain.h <<<'#undef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION')/plain.h"
}

# seeds NAME FILE…: copies of them.
seeds() {
  local name=$1
  shift
  mkdir -p "$out/$name-seeds"
  cp "$@" "$out/$name-seeds"
}

# ordinary NAME FILE…: copies of files that are no seeds but what people have.
ordinary() {
  local name=$1
  shift
  mkdir -p "$out/$name-ordinary"
  cp "$@" "$out/$name-ordinary"
}

# words NAME WORD…: a dictionary of these words, which are written as in a dictionary.
words() {
  local name=$1
  shift
  printf '"%s"\n' "$@" >"$out/$name.dict"
}

# The targets that the other benchmarks have, too.
shared() {
  "$here/../targets/build.sh" "$out" "$1"
}

cjson() {
  shared cjson
  folder=$(unpack cjson 'cjson-[0-9.]*')
  cp "$folder/fuzzing/json.dict" "$out/cjson.dict"
}

zlib() {
  shared zlib
  folder=$(unpack zlib 'zlib-[0-9.]*dfsg')
  words zlib '\x1f\x8b\x08' '\x78\x9c' '\x78\x01' '\x78\xda' '\x00\x00\xff\xff'
}

libpng() {
  shared libpng
  folder=$(unpack libpng1.6 'libpng1.6-[0-9.]*')
  cp "$folder/contrib/oss-fuzz/png.dict" "$out/libpng.dict"
}

# Text: CommonMark to HTML.
cmark() {
  local config
  folder=$(unpack cmark 'cmark-[0-9.]*')
  config cmark config.h >/dev/null <<'END'
#define HAVE_STDBOOL_H
#include <stdbool.h>
#define HAVE___BUILTIN_EXPECT
#define HAVE___ATTRIBUTE__
#define CMARK_ATTRIBUTE(list) __attribute__(list)
#define CMARK_INLINE inline
END
  config cmark cmark_version.h >/dev/null <<'END'
#define CMARK_VERSION 0
#define CMARK_VERSION_STRING "0"
END
  config=$(config cmark cmark_export.h <<<'#define CMARK_EXPORT')
  compile cmark "$folder/src" '' -I "$config" -- blocks.c buffer.c cmark.c cmark_ctype.c commonmark.c \
    houdini_href_e.c houdini_html_e.c houdini_html_u.c html.c inlines.c iterator.c latex.c man.c node.c \
    references.c render.c scanners.c utf8.c xml.c
  mkdir -p "$out/cmark-seeds"
  printf '\x00# Title\n\n* one\n* two\n\n1. `code`\n\n> [link](/a "b") and *more*\n' >"$out/cmark-seeds/blocks"
  printf '\x01<b>x</b> &amp; ![i][r]\n\n[r]: <u>\n\n```c\nint a;\n```\n***\n' >"$out/cmark-seeds/inlines"
  cp "$folder/test/fuzzing_dictionary" "$out/cmark.dict"
}

# Colour profiles.
lcms2() {
  folder=$(unpack lcms2 'lcms2-[0-9.]*')
  compile lcms2 "$folder/src" '-lm -lpthread' -I "$folder/include" -- cmsalpha.c cmscam02.c cmscgats.c \
    cmscnvrt.c cmserr.c cmsgamma.c cmsgmt.c cmshalf.c cmsintrp.c cmsio0.c cmsio1.c cmslut.c cmsmd5.c \
    cmsmtrx.c cmsnamed.c cmsopt.c cmspack.c cmspcs.c cmsplugin.c cmsps2.c cmssamp.c cmssm.c cmstypes.c \
    cmsvirt.c cmswtpnt.c cmsxform.c
  seeds lcms2 "$folder"/testbed/{test5,toosmall}.icc
  words lcms2 acsp A2B0 A2B1 B2A0 B2A1 D2B0 'RGB ' CMYK 'Lab ' 'XYZ ' GRAY mntr prtr scnr link abst spac nmcl \
    curv para desc text mluc mft1 mft2 'mAB ' 'mBA ' mpet cvst clut matf rXYZ gXYZ bXYZ rTRC kTRC wtpt gamt ncl2 \
    chad meas view pseq 'vcgt'
}

# XML, without a namespace and with one.
expat() {
  local config
  folder=$(unpack expat 'expat-[0-9.]*')
  config=$(config expat expat_config.h <<'END'
#define BYTEORDER 1234
#define HAVE_MEMMOVE 1
#define XML_CONTEXT_BYTES 1024
#define XML_DTD 1
#define XML_NS 1
#define XML_POOR_ENTROPY 1
END
)
  compile expat "$folder/expat/lib" '' -I "$config" -DHAVE_EXPAT_CONFIG_H -- xmlparse.c xmlrole.c xmltok.c
  mkdir -p "$out/expat-seeds"
  printf '<?xml version="1.0"?>\n<!DOCTYPE a [<!ENTITY e "text"><!ELEMENT a ANY>]>\n<a b="c">&e;<d/></a>\n' \
    >"$out/expat-seeds/entity"
  printf '<a xmlns:n="urn:x"><n:b c="1">x &lt; y</n:b><!-- no --><?pi d?><![CDATA[<]]></a>' \
    >"$out/expat-seeds/namespace"
  words expat '<!DOCTYPE' '<!ENTITY' '<!ELEMENT' '<!ATTLIST' '<!NOTATION' '<![CDATA[' ']]>' '<?xml' '<!--' '-->' \
    '<![INCLUDE[' '<![IGNORE[' '#PCDATA' '#REQUIRED' '#IMPLIED' '#FIXED' CDATA NMTOKENS NMTOKEN IDREFS ENTITIES \
    SYSTEM PUBLIC NDATA EMPTY ANY 'xmlns:' 'xml:space' 'encoding=\"' 'standalone=\"yes\"' UTF-16 ISO-8859-1 \
    US-ASCII '&#x41;' '&lt;' '%p;'
}

# A compressed stream without a magic number.
brotli() {
  folder=$(unpack brotli 'brotli-[0-9.]*')
  compile brotli "$folder/c" -lm -I "$folder/c/include" -- common/constants.c common/context.c \
    common/dictionary.c common/platform.c common/transform.c dec/bit_reader.c dec/decode.c dec/huffman.c \
    dec/state.c
  seeds brotli "$folder"/tests/testdata/{empty,ukkonooa}.compressed
  words brotli '\x1b' '\x8b' '\xa1' '\x06' '\x0b\x02\x80'
}

# DNS: the answers of a server.
cares() {
  local config
  folder=$(unpack c-ares 'c-ares-[0-9.]*')
  config cares ares_build.h >/dev/null <<'END'
#include <sys/types.h>
#include <sys/socket.h>
#define CARES_TYPEOF_ARES_SOCKLEN_T socklen_t
#define CARES_TYPEOF_ARES_SSIZE_T ssize_t
typedef socklen_t ares_socklen_t;
typedef ssize_t ares_ssize_t;
END
  config=$(config cares ares_config.h <<'END'
#define HAVE_ARPA_INET_H 1
#define HAVE_ARPA_NAMESER_COMPAT_H 1
#define HAVE_ARPA_NAMESER_H 1
#define HAVE_ERRNO_H 1
#define HAVE_LIMITS_H 1
#define HAVE_NETDB_H 1
#define HAVE_NETINET_IN_H 1
#define HAVE_STRCASECMP 1
#define HAVE_STRDUP 1
#define HAVE_STRINGS_H 1
#define HAVE_STRNCASECMP 1
#define HAVE_STRUCT_ADDRINFO 1
#define HAVE_STRUCT_IN6_ADDR 1
#define HAVE_STRUCT_SOCKADDR_IN6 1
#define HAVE_STRUCT_TIMEVAL 1
#define HAVE_SYS_SOCKET_H 1
#define HAVE_SYS_TIME_H 1
#define HAVE_SYS_TYPES_H 1
#define HAVE_SYS_UIO_H 1
#define HAVE_WRITEV 1
#define HAVE_UNISTD_H 1
#define HAVE_AF_INET6 1
#define HAVE_PF_INET6 1
#define HAVE_INET_NTOP 1
#define HAVE_INET_PTON 1
#define HAVE_STRUCT_SOCKADDR_STORAGE 1
#define HAVE_SIG_ATOMIC_T 1
#define HAVE_FCNTL_H 1
#define HAVE_FCNTL_O_NONBLOCK 1
#define HAVE_SOCKET 1
#define HAVE_CONNECT 1
#define HAVE_GETTIMEOFDAY 1
#define HAVE_TIME_H 1
#define HAVE_STDLIB_H 1
#define HAVE_STRING_H 1
#define HAVE_NET_IF_H 1
#define HAVE_NETINET_TCP_H 1
#define HAVE_SYS_IOCTL_H 1
#define HAVE_SYS_SELECT_H 1
#define RECVFROM_TYPE_ARG1 int
#define RECVFROM_TYPE_ARG2 void
#define RECVFROM_TYPE_ARG2_IS_VOID 1
#define RECVFROM_TYPE_ARG3 size_t
#define RECVFROM_TYPE_ARG4 int
#define RECVFROM_TYPE_ARG5 struct sockaddr
#define RECVFROM_TYPE_ARG6 socklen_t
#define RECVFROM_TYPE_RETV ssize_t
#define HAVE_RECVFROM 1
#define HAVE_RECV 1
#define RECV_TYPE_ARG1 int
#define RECV_TYPE_ARG2 void *
#define RECV_TYPE_ARG3 size_t
#define RECV_TYPE_ARG4 int
#define RECV_TYPE_RETV ssize_t
#define HAVE_SEND 1
#define SEND_QUAL_ARG2 const
#define SEND_TYPE_ARG1 int
#define SEND_TYPE_ARG2 void *
#define SEND_TYPE_ARG3 size_t
#define SEND_TYPE_ARG4 int
#define SEND_TYPE_RETV ssize_t
#define TIME_WITH_SYS_TIME 1
#define STDC_HEADERS 1
END
)
  # shellcheck disable=SC2046 # one word a file
  compile cares "$folder/src/lib" '' -I "$config" -I "$folder/include" -DHAVE_CONFIG_H -DCARES_STATICLIB \
    -DCARES_BUILDING_LIBRARY -DINADDRSZ=4 -w -- $(cd "$folder/src/lib" && ls ./*.c)
  mkdir -p "$out/cares-seeds"
  python3 - "$out/cares-seeds" <<'PY'
import pathlib, struct, sys
name = b"\x07example\x03com\x00"
def answer(kind, data):
    record = struct.pack(">HHHIH", 0xc00c, kind, 1, 60, len(data)) + data
    return struct.pack(">6H", 1, 0x8180, 1, 1, 0, 0) + name + struct.pack(">2H", kind, 1) + record
kinds = {"a": (1, b"\x01\x02\x03\x04"), "mx": (15, b"\x00\x0a\x04mail\xc0\x0c"), "txt": (16, b"\x02hi\x01x"),
         "srv": (33, b"\x00\x01\x00\x02\x00\x35" + name)}
for kind, (number, data) in kinds.items():
    pathlib.Path(sys.argv[1], kind).write_bytes(answer(number, data))
PY
  words cares '\x00\x01' '\x00\x02' '\x00\x05' '\x00\x06' '\x00\x0c' '\x00\x0f' '\x00\x10' '\x00\x1c' '\x00\x21' \
    '\x00\x23' '\x01\x01' '\xc0\x0c' '\x07example\x03com\x00'
}

# Fonts: all drivers, without what other libraries would bring. The seed is a font made of text.
freetype() {
  folder=$(unpack freetype 'freetype-[0-9]*dfsg')
  compile freetype "$folder/src" -lm -I "$folder/include" -DFT2_BUILD_LIBRARY -w -- autofit/autofit.c base/ftbase.c \
    base/ftbbox.c base/ftbdf.c base/ftbitmap.c base/ftcid.c base/ftfstype.c base/ftgasp.c base/ftglyph.c \
    base/ftgxval.c base/ftinit.c base/ftmm.c base/ftotval.c base/ftpatent.c base/ftpfr.c base/ftstroke.c \
    base/ftsynth.c base/fttype1.c base/ftwinfnt.c base/ftsystem.c base/ftdebug.c bdf/bdf.c cache/ftcache.c \
    cff/cff.c cid/type1cid.c gzip/ftgzip.c lzw/ftlzw.c pcf/pcf.c pfr/pfr.c psaux/psaux.c pshinter/pshinter.c \
    psnames/psmodule.c raster/raster.c sdf/sdf.c sfnt/sfnt.c smooth/smooth.c svg/ftsvg.c truetype/truetype.c \
    type1/type1.c type42/type42.c winfonts/winfnt.c
  mkdir -p "$out/freetype-seeds"
  printf '%s\n' 'STARTFONT 2.1' 'FONT x' 'SIZE 8 75 75' 'FONTBOUNDINGBOX 8 8 0 0' 'STARTPROPERTIES 2' \
    'FONT_ASCENT 8' 'FONT_DESCENT 0' ENDPROPERTIES 'CHARS 1' 'STARTCHAR A' 'ENCODING 65' 'SWIDTH 1000 0' \
    'DWIDTH 8 0' 'BBX 8 2 0 0' BITMAP FF 81 ENDCHAR ENDFONT >"$out/freetype-seeds/text.bdf"
  printf '%s\n' '%!PS-AdobeFont-1.0: x' '/FontName /x def' '/Encoding StandardEncoding def' '/PaintType 0 def' \
    '/FontType 1 def' '/FontMatrix [0.001 0 0 0.001 0 0] readonly def' '/FontBBox {0 0 9 9} readonly def' \
    'currentdict end' 'currentfile eexec' '/Private 9 dict dup begin' '/lenIV 4 def /CharStrings 1 dict dup begin' \
    '/.notdef 4 RD abcd ND end end' >"$out/freetype-seeds/type1.pfa"
  words freetype '\x00\x01\x00\x00' OTTO true ttcf wOFF cmap glyf loca head hhea hmtx maxp 'OS/2' name post fpgm \
    prep 'cvt ' fvar gvar avar 'CFF ' CFF2 kern EBDT EBLC CBDT CBLC COLR CPAL sbix PFR0 '\x01fcp' '\x1f\x8b\x08' \
    '\x1f\x9d' '%!PS-AdobeFont' '%!FontType' '%!PS-TrueTypeFont' '/Private' '/CharStrings' '/Subrs' '/sfnts' STARTCHAR
}

# A programming language: compiled, written and read again, never run.
lua() {
  local config
  folder=$(unpack lua5.4 'lua5.4-[0-9.]*')
  config=$(config lua lua5.4-deb-multiarch.h <<<'#define DEB_HOST_MULTIARCH "none"')
  compile lua "$folder/src" '-lm -ldl' -I "$config" -DLUA_USE_POSIX -- lapi.c lauxlib.c lbaselib.c lcode.c lctype.c ldebug.c \
    ldo.c ldump.c lfunc.c lgc.c llex.c lmem.c lobject.c lopcodes.c lparser.c lstate.c lstring.c lstrlib.c \
    ltable.c ltm.c lundump.c lvm.c lzio.c
  mkdir -p "$out/lua-seeds"
  printf 'local a <const> = {1, x = "y", [2] = 0x1p4}\nfor i = 1, #a do if a[i] then goto out end end ::out::\n' \
    >"$out/lua-seeds/table"
  printf 'function f(...) local s = [[z]] .. "\\u{20}" while not (... == nil) do return f(1 // 2 ~ 3) end end' \
    >"$out/lua-seeds/function"
  words lua and break do else elseif end false for function goto if in local nil not or repeat return then true \
    until while '<close>' '<const>' '...' '::' '//' '[==[' ']==]' '\x1bLua' '~=' '>>' '0x1p' '\\u{' '\\z' '--[['
}

# Archives: cabinets of Windows, with three methods of compression.
mspack() {
  local config tests
  folder=$(unpack libmspack 'libmspack-[0-9.]*')
  config=$(config mspack config.h <<'END'
#define HAVE_FSEEKO 1
#define HAVE_INTTYPES_H 1
#define HAVE_STRING_H 1
#define HAVE_TOWLOWER 1
#define SIZEOF_OFF_T 8
END
)
  compile mspack "$folder/mspack" '' -I "$config" -DHAVE_CONFIG_H -- cabd.c crc32.c lzxd.c mszipd.c qtmd.c system.c
  tests=$folder/test/test_files/cabd
  seeds mspack "$tests"/{mszip_lzx_qtm,normal_2files_2folders,multi_basic_pt1}.cab
  words mspack MSCF '\x01\x00' '\x03\x15' '\x02\x12' CK '\x00\x80'
}

# Regular expressions: half of the input is the pattern, the other half the text.
pcre2() {
  local config=$out/pcre2-config
  folder=$(unpack pcre2 'pcre2-[0-9.]*')
  mkdir -p "$config"
  cp "$folder/src/pcre2.h.generic" "$config/pcre2.h"
  cp "$folder/src/config.h.generic" "$config/config.h"
  put "$folder/src/pcre2_chartables.c.dist" "$folder/src/pcre2_chartables.c"
  compile pcre2 "$folder/src" '' -I "$config" -DHAVE_CONFIG_H -DPCRE2_CODE_UNIT_WIDTH=8 -DPCRE2_STATIC \
    -DSUPPORT_UNICODE -w -- pcre2_auto_possess.c pcre2_chartables.c pcre2_compile.c pcre2_config.c \
    pcre2_context.c pcre2_convert.c pcre2_dfa_match.c pcre2_error.c pcre2_extuni.c pcre2_find_bracket.c \
    pcre2_jit_compile.c pcre2_maketables.c pcre2_match.c pcre2_match_data.c pcre2_newline.c \
    pcre2_ord2utf.c pcre2_pattern_info.c pcre2_script_run.c pcre2_serialize.c pcre2_string_utils.c \
    pcre2_study.c pcre2_substitute.c pcre2_substring.c pcre2_tables.c pcre2_ucd.c pcre2_valid_utf.c pcre2_xclass.c
  mkdir -p "$out/pcre2-seeds"
  printf '\x00(a|b)*c{2,3}[^d-f]\\d+?\nabccx12' >"$out/pcre2-seeds/classes"
  printf '\x01^(?<n>\\w+)(?=\\s)\\k<n>?(?i:X)$\nword x' >"$out/pcre2-seeds/groups"
  words pcre2 '(?:' '(?=' '(?!' '(?<=' '(?<!' '(?<n>' '(?P<n>' '(?>' '(?|' '(?R)' '(?1)' '(?(1)' '(?i)' '(?xx)' '(*ACCEPT)' \
    '(*FAIL)' '(*COMMIT)' '(*PRUNE)' '(*SKIP)' '(*THEN)' '(*UTF)' '(*UCP)' '(*atomic:' '(*sr:' '[[:alpha:]]' '[[:^digit:]]' \
    '\\p{Lu}' '\\P{Greek}' '\\k<n>' '\\g{1}' '\\x{100}' '\\Q' '\\E' '\\K' '\\R' '\\X' '\\b' '{1,2}' '*+' '(?C1)' '(?#'
}

# SQL: the library as one file, which another package carries.
sqlite() {
  folder=$(unpack fossil 'fossil-[0-9.]*')
  compile sqlite "$folder/extsrc" -lm -DSQLITE_THREADSAFE=0 -DSQLITE_OMIT_LOAD_EXTENSION \
    -DSQLITE_OMIT_RANDOMNESS -DSQLITE_DEFAULT_MEMSTATUS=0 -w -- sqlite3.c
  mkdir -p "$out/sqlite-seeds"
  printf 'create table t(a,b primary key);insert into t values(1,2),(3,"x");select a+1,count(*) from t group by b;\n' \
    >"$out/sqlite-seeds/table"
  printf "select upper(substr('abc',2)),json('[1]'),hex(x'00ff'),date(0) where 1 in (select 2 union select 1);\n" \
    >"$out/sqlite-seeds/functions"
  words sqlite ALTER ANALYZE ATTACH BEGIN 'BETWEEN ' CASE CAST COLLATE COMMIT CREATE CROSS CURRENT_TIME DEFAULT DELETE \
    DISTINCT DROP EXCEPT EXISTS EXPLAIN 'FOREIGN KEY' 'GROUP BY' HAVING INDEX 'INSERT INTO' INTERSECT JOIN LEFT LIKE \
    LIMIT NATURAL 'NOT NULL' 'ORDER BY' OVER PARTITION PRAGMA 'PRIMARY KEY' RECURSIVE REFERENCES REINDEX REPLACE \
    ROLLBACK SAVEPOINT SELECT TABLE TRIGGER UNION UNIQUE UPDATE USING VACUUM VALUES VIEW 'VIRTUAL TABLE' WHERE WINDOW WITH
}

# Tags of pictures, with those of five makers of cameras: tables of offsets.
exif() {
  local config
  folder=$(unpack libexif 'libexif-[0-9.]*')
  mkdir -p "$out/exif-config/libexif"
  config exif libexif/_stdint.h >/dev/null <<<'#include <stdint.h>'
  config=$(config exif config.h <<'END'
#define GETTEXT_PACKAGE "libexif"
END
)
  # shellcheck disable=SC2046 # one word a file
  compile exif "$folder" -lm -I "$config" -- $(cd "$folder" && ls libexif/*.c libexif/*/*.c)
  seeds exif "$folder"/test/testdata/{canon_makernote_variant_1,pentax_makernote_variant_2}.jpg
  words exif 'Exif\x00\x00' 'II*\x00' 'MM\x00*' '\xff\xe1' '\xff\xd8' 'Nikon\x00' 'OLYMP\x00' 'OLYMPUS\x00II' 'FUJIFILM' \
    'AOC\x00' 'PENTAX \x00' 'Apple iOS\x00' Canon '\x92\x7c' '\x87\x69' '\x88\x25' '\xa0\x05' '\x92\x86' ASCII UNICODE JIS
}

# Certificates: lengths inside lengths.
tasn1() {
  local config
  folder=$(unpack libtasn1-6 'libtasn1-6-[0-9.]*')
  config=$(config tasn1 config.h <<'END'
#define HAVE_CONFIG_H 1
#define PACKAGE_VERSION "4"
#define SIZEOF_UNSIGNED_INT 4
#define SIZEOF_UNSIGNED_LONG_INT 8
#define _GL_ATTRIBUTE_PURE
#define _GL_ATTRIBUTE_CONST
#define _GL_CONFIG_H_INCLUDED 1
#define _GL_INLINE_HEADER_BEGIN
#define _GL_INLINE_HEADER_END
#define _GL_INLINE static inline
END
)
  put "$folder/examples/pkix_asn1_tab.c" "$folder/lib/pkix_asn1_tab.c"
  compile tasn1 "$folder/lib" '' -I "$config" -I "$folder/lib/includes" -I "$folder/lib/gl" -DHAVE_CONFIG_H \
    -DASN1_BUILDING -D_GNU_SOURCE -w -- ASN1.c coding.c decoding.c element.c errors.c gstr.c \
    parser_aux.c pkix_asn1_tab.c structure.c version.c
  seeds tasn1 "$folder"/tests/{cert-invalid-time,TestCertOctetOverflow}.der
  words tasn1 '\x30\x82' '\x30\x80' '\x02\x01' '\x03\x02' '\x04\x02' '\x05\x00' '\x06\x03\x55\x04\x03' '\x06\x03\x55\x1d\x0f' \
    '\x0c\x01' '\x13\x01' '\x16\x01' '\x17\x0d' '\x18\x0f' '\x31\x0b' '\xa0\x03\x02\x01\x02' '\xa3\x02' '\x24\x80' '\x00\x00'
}

# Images: directories of tags with offsets, and six methods of compression.
tiff() {
  local config
  folder=$(unpack tiff 'tiff-[0-9.]*')
  config tiff tif_config.h >/dev/null <<'END'
#define HAVE_ASSERT_H 1
#define HAVE_FCNTL_H 1
#define HAVE_STRINGS_H 1
#define HAVE_SYS_TYPES_H 1
#define HAVE_UNISTD_H 1
#define CHUNKY_STRIP_READ_SUPPORT 1
#define SIZEOF_SIZE_T 8
#define STRIP_SIZE_DEFAULT 8192
#define TIFF_SIZE_FORMAT "zu"
#define TIFF_SSIZE_FORMAT "zd"
#define TIFF_MAX_DIR_COUNT 1048576
END
  config=$(config tiff tiffconf.h <<'END'
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#define TIFF_INT8_T int8_t
#define TIFF_INT16_T int16_t
#define TIFF_INT32_T int32_t
#define TIFF_INT64_T int64_t
#define TIFF_UINT8_T uint8_t
#define TIFF_UINT16_T uint16_t
#define TIFF_UINT32_T uint32_t
#define TIFF_UINT64_T uint64_t
#define TIFF_SSIZE_T int64_t
#define HAVE_IEEEFP 1
#define HOST_FILLORDER FILLORDER_LSB2MSB
#define CCITT_SUPPORT 1
#define LOGLUV_SUPPORT 1
#define LZW_SUPPORT 1
#define NEXT_SUPPORT 1
#define PACKBITS_SUPPORT 1
#define THUNDER_SUPPORT 1
#define STRIPCHOP_DEFAULT TIFF_STRIPCHOP
#define SUBIFD_SUPPORT 1
#define DEFAULT_EXTRASAMPLE_AS_ALPHA 1
END
)
  compile tiff "$folder/libtiff" -lm -I "$config" -w -- tif_aux.c tif_close.c tif_codec.c tif_color.c \
    tif_compress.c tif_dir.c tif_dirinfo.c tif_dirread.c tif_dirwrite.c tif_dumpmode.c tif_error.c \
    tif_extension.c tif_fax3.c tif_fax3sm.c tif_flush.c tif_getimage.c tif_hash_set.c tif_luv.c tif_lzw.c \
    tif_next.c tif_open.c tif_packbits.c tif_predict.c tif_print.c tif_read.c tif_strip.c tif_swab.c \
    tif_thunder.c tif_tile.c tif_unix.c tif_version.c tif_warning.c tif_write.c
  mkdir -p "$out/tiff-seeds"
  python3 - "$out/tiff-seeds" <<'PY'
import pathlib, struct, sys
def image(order, tags, data):
    """A directory with the pixels behind it; the first offset of data is that of the pixels."""
    count = len(tags)
    begin = 8 + 2 + 12 * count + 4
    entries = b""
    for tag, kind, value in tags:
        value = begin if value == "data" else value
        small = struct.pack(order + "HH", value, 0) if kind == 3 else struct.pack(order + "I", value)
        entries += struct.pack(order + "HHI", tag, kind, 1) + small
    magic = b"II*\0" if order == "<" else b"MM\0*"
    return magic + struct.pack(order + "I", 8) + struct.pack(order + "H", count) + entries + bytes(4) + data
def tags(width, height, bits, compression, photometric, size):
    return [(256, 3, width), (257, 3, height), (258, 3, bits), (259, 3, compression), (262, 3, photometric),
            (273, 4, "data"), (277, 3, 1), (278, 3, height), (279, 4, size)]
folder = pathlib.Path(sys.argv[1])
folder.joinpath("grey.tif").write_bytes(image("<", tags(4, 4, 8, 1, 1, 16), bytes(range(16))))
folder.joinpath("packed.tif").write_bytes(image(">", tags(8, 8, 1, 32773, 0, 6), b"\x03\xff\x81\x81\xff\xfd"))
PY
  words tiff 'II*\x00' 'MM\x00*' 'II+\x00' '\x00\x01\x00\x03' '\x01\x01\x00\x03' '\x03\x01\x05\x00' '\x03\x01\x03\x00' \
    '\x03\x01\x04\x00' '\x03\x01\x05\x80' '\x03\x01\x97\x87' '\x06\x01\x03\x00' '\x11\x01\x04\x00' '\x17\x01\x04\x00' \
    '\x42\x01' '\x44\x01' '\x4a\x01' '\x52\x01' '\x53\x01' '\x12\x02' '\x1c\x01'
}

# YAML: events of the parser, written again.
yaml() {
  folder=$(unpack libyaml 'libyaml-[0-9.]*')
  compile yaml "$folder/src" '' -I "$folder/include" -DYAML_VERSION_MAJOR=0 -DYAML_VERSION_MINOR=2 \
    -DYAML_VERSION_PATCH=5 '-DYAML_VERSION_STRING="0.2.5"' -- api.c dumper.c emitter.c loader.c parser.c \
    reader.c scanner.c writer.c
  mkdir -p "$out/yaml-seeds"
  printf -- '--- # c\na: [1, "x", {b: ~}]\nc: &r |\n  text\nd: *r\n' >"$out/yaml-seeds/block"
  printf -- '%%YAML 1.1\n%%TAG ! tag:x,1:\n---\n? !!str k\n: - >-\n    folded\n  - '"'"'q'"'"'\n...\n' >"$out/yaml-seeds/tags"
  words yaml '%YAML 1.1' '%TAG' '---' '...' '!!str' '!!map' '<<: ' '&a ' '*a' '? ' ': ' '- ' '|+' '>-' '\\x41' '\\u0041' \
    '\xef\xbb\xbf' '\xff\xfe' '\xfe\xff' '\\N' '\\P'
}

# A compressed stream with a magic number, entropy coding of two kinds and a checksum.
zstd() {
  folder=$(unpack libzstd 'libzstd-[0-9.]*')
  # shellcheck disable=SC2046 # two words
  compile zstd "$folder/lib" '' $(plain zstd) -DZSTD_DISABLE_ASM -DXXH_NAMESPACE=ZSTD_ -- common/debug.c common/entropy_common.c \
    common/error_private.c common/fse_decompress.c common/xxhash.c common/zstd_common.c \
    decompress/huf_decompress.c decompress/zstd_ddict.c decompress/zstd_decompress.c decompress/zstd_decompress_block.c
  seeds zstd "$folder"/tests/golden-decompression/empty-block.zst
  mkdir -p "$out/zstd-ordinary"
  # Whoever has dpkg has the library.
  python3 - "$folder" "$out/zstd-seeds" "$out/zstd-ordinary" <<'PY'
import ctypes, pathlib, sys
library = ctypes.CDLL("libzstd.so.1")
library.ZSTD_createCCtx.restype = ctypes.c_void_p
library.ZSTD_compress2.restype = ctypes.c_size_t
def compress(data, level, checksum):
    context = ctypes.c_void_p(library.ZSTD_createCCtx())
    for parameter, value in ((100, level), (201, checksum)):
        library.ZSTD_CCtx_setParameter(context, parameter, value)
    room = ctypes.create_string_buffer(len(data) + 1024)
    length = library.ZSTD_compress2(context, room, ctypes.c_size_t(len(room)), data, ctypes.c_size_t(len(data)))
    return room.raw[:length]
package, seeds, ordinary = map(pathlib.Path, sys.argv[1:])
text = (package / "lib/README.md").read_bytes()
(seeds / "text.zst").write_bytes(compress(text[:400], 3, 0))
(seeds / "sum.zst").write_bytes(compress(b"hello hello hello world " * 20, 19, 1))
files = ["lib/README.md", "lib/zstd.h", "lib/decompress/zstd_decompress.c", "lib/common/fse.h", "CONTRIBUTING.md"]
for index, file in enumerate(files):
    for level in (1, 5, 19):
        data = (package / file).read_bytes()[:100000]
        (ordinary / f"{index}-{level}.zst").write_bytes(compress(data, level, index % 2))
PY
  words zstd '\x28\xb5\x2f\xfd' '\x50\x2a\x4d\x18' '\x37\xa4\x30\xec' '\x01\x00\x00' '\x28\xb5\x2f\xfd\x24' '\x28\xb5\x2f\xfd\x00\x48'
}

# A compressed stream of bits, with three checksums of which a run stops at none but the last.
bzip2() {
  folder=$(unpack bzip2 'bzip2-[0-9.]*')
  compile bzip2 "$folder" '' -DBZ_NO_STDIO -w -- bzlib.c crctable.c decompress.c huffman.c randtable.c compress.c blocksort.c
  mkdir -p "$out/bzip2-seeds" "$out/bzip2-ordinary"
  python3 - "$folder" "$out/bzip2-seeds" "$out/bzip2-ordinary" <<'PY'
import bz2, pathlib, sys
package, seeds, ordinary = map(pathlib.Path, sys.argv[1:])
(seeds / "empty").write_bytes(b"\x00" + bz2.compress(b"", 1))
(seeds / "text").write_bytes(b"\x01" + bz2.compress(b"hello hello hello world " * 20, 9))
for index, file in enumerate(["bzlib.c", "compress.c", "decompress.c", "huffman.c", "README", "blocksort.c", "bzip2.1"]):
    (ordinary / file).write_bytes(bytes([index % 2]) + bz2.compress((package / file).read_bytes(), 1 + index))
PY
  words bzip2 BZh1 BZh9 '1AY&SY' '\x17\x72\x45\x38\x50\x90'
}

# Settings: names, numbers, texts, groups and lists.
libconfig() {
  local config
  folder=$(unpack libconfig 'libconfig-[0-9.]*')
  config=$(config libconfig ac_config.h <<<'#define HAVE_XLOCALE_H 0')
  compile libconfig "$folder/lib" '' -I "$config" -D_GNU_SOURCE -Dfopen=no_file -w -- grammar.c libconfig.c \
    scanctx.c scanner.c strbuf.c
  seeds libconfig "$folder"/tests/testdata/input_{2,3,4}.cfg
  mkdir -p "$out/libconfig-ordinary"
  python3 - "$folder" "$out/libconfig-ordinary" <<'PY'
import pathlib, sys
package, ordinary = map(pathlib.Path, sys.argv[1:])
for number in range(8):
    lines = [f"# Settings of a service, number {number}", 'version = "1.0";']
    for index in range(12 * (number + 1)):
        lines += [f"service_{index} : {{", f'  name = "worker {index}" " of {number}";  // two texts',
                  f"  port = {8000 + index}; mask = 0x{index * 77:X}; limit = {index}000000000L;",
                  f"  ratio = {index}.5e-{number}; enabled = {'true' if index % 3 else 'FALSE'};",
                  f"  hosts = [ {', '.join(str(item) for item in range(index % 7))} ];",
                  f'  rules = ( "a\\x41\\n", {{ deny = {index}; }}, ( 1, 2.0 ), [ "x", "y" ] ); /* mixed */', "};"]
    (ordinary / f"{number}.cfg").write_text("\n".join(lines) + "\n")
(ordinary / "example.cfg").write_bytes((package / "examples/c/example.cfg").read_bytes())
PY
  words libconfig true FALSE '@include \"' '0x1F' '1L' '1.5e3' '\\x41' '/*' '*/' '//' ' : ' ' = ' '( ' ' )' '[ ' ' ]' '{ ' ' };' '\" \"'
}

# Drawings: a text of paths and colours, and their pixels.
nanosvg() {
  folder=$(unpack libsdl2-image 'libsdl2-image-[0-9.]*')
  compile nanosvg "$folder" -lm -DSDLCALL= -ftrivial-auto-var-init=zero -w --
  mkdir -p "$out/nanosvg-seeds" "$out/nanosvg-ordinary"
  printf '<svg width="9" height="9"><path d="M1 1h3c1 2 3 4 5 6a2 1 0 0 1 1 1q1 1 2 2z" fill="#f00" stroke="red"/></svg>' \
    >"$out/nanosvg-seeds/path"
  printf '%s' '<svg viewBox="0 0 9 9"><defs><linearGradient id="a"><stop offset="5%" stop-color="rgb(1,2,3)"/>' \
    '</linearGradient></defs><g transform="rotate(9)"><circle r="3" style="fill:url(#a)"/></g></svg>' \
    >"$out/nanosvg-seeds/gradient"
  seeds nanosvg "$folder/test/svg.svg"
  python3 - "$out/nanosvg-ordinary" <<'PY'
import pathlib, random, sys
numbers = random.Random(1)
def at():
    return f"{numbers.uniform(0, 64):.2f}"
def path():
    steps = [f"M{at()} {at()}"]
    for _ in range(numbers.randint(2, 12)):
        steps.append({"L": f"L{at()},{at()}", "c": f"c{at()} {at()} {at()} {at()} {at()} {at()}", "q": f"q{at()} {at()} -{at()} {at()}",
                      "a": f"a{at()} {at()} 30 {numbers.randint(0, 1)} 1 {at()} {at()}", "H": f"H{at()}v{at()}", "S": f"S{at()} {at()} {at()} {at()}",
                      "T": f"T{at()},{at()}"}[numbers.choice("LcqaHST")])
    return "".join(steps) + numbers.choice(["z", ""])
def shape():
    paint = numbers.choice(['fill="none" stroke="#0a0" stroke-width="2" stroke-dasharray="4 2" stroke-linecap="round"',
                            'fill="url(#g1)"', 'fill="url(#g2)" fill-opacity=".5"', 'style="fill:#123456;stroke:blue;stroke-linejoin:bevel"',
                            'fill="rgb(10%,20%,30%)" fill-rule="evenodd"', 'class="c"'])
    form = numbers.choice([f'path d="{path()}"', f'rect x="{at()}" y="{at()}" width="{at()}" height="{at()}" rx="2"',
                           f'circle cx="{at()}" cy="{at()}" r="{at()}"', f'ellipse cx="{at()}" cy="50%" rx="{at()}" ry="1cm"',
                           f'line x1="{at()}" y1="{at()}" x2="1in" y2="{at()}"', f'polygon points="{at()},{at()} {at()},{at()} {at()},{at()}"',
                           f'polyline points="{at()} {at()} {at()} {at()}"'])
    return f"<{form} {paint}/>"
for number in range(8):
    parts = ['<?xml version="1.0"?><!-- drawn -->', '<svg xmlns="http://www.w3.org/2000/svg" width="64mm" height="64mm" viewBox="0 0 64 64">',
             '<style>.c{fill:#abc;stroke:red}</style><defs><linearGradient id="g1" x1="0" y1="0" x2="1" y2="1" gradientTransform="rotate(45)">'
             '<stop offset="0" stop-color="#fff"/><stop offset="100%" style="stop-color:black;stop-opacity:.5"/></linearGradient>'
             '<radialGradient id="g2" gradientUnits="userSpaceOnUse" cx="32" cy="32" r="20" spreadMethod="reflect" xlink:href="#g1"/></defs>']
    for _ in range(2 + number):
        turn = numbers.choice(["translate(3,4)", "scale(.5)", "rotate(30 32 32)", "skewX(5)", "matrix(1 0 .2 1 0 0)"])
        parts.append(f'<g transform="{turn}" opacity=".9">' + "\n".join(shape() for _ in range(3)) + "</g>")
    pathlib.Path(sys.argv[1], f"{number}.svg").write_text("\n".join(parts + ["</svg>"]))
PY
  words nanosvg '<svg ' '<g ' '<path d=\"' '<rect ' '<circle ' '<ellipse ' '<line ' '<polyline points=\"' '<polygon ' '<defs>' \
    '<linearGradient ' '<radialGradient ' '<stop ' '<style>' 'viewBox=\"' 'transform=\"' 'matrix(' 'rotate(' 'skewY(' 'scale(' \
    'fill=\"' 'stroke-dasharray=\"' 'stroke-linejoin' 'stroke-miterlimit' 'preserveAspectRatio=\"' 'xlink:href=\"#' 'url(#' \
    'rgb(' 'gradientUnits' 'spreadMethod' 'evenodd' 'display:none' 'offset=\"' 'objectBoundingBox' none mm
}

# Machine code of twelve families, by tables.
capstone() {
  folder=$(unpack capstone 'capstone-[0-9.]*')
  # shellcheck disable=SC2046 # one word a file
  compile capstone "$folder" '' -I "$folder/include" -DCAPSTONE_USE_SYS_DYN_MEM \
    -DCAPSTONE_HAS_{ARM,ARM64,EVM,M680X,M68K,MIPS,POWERPC,SPARC,SYSZ,TMS320C64X,X86,XCORE} -w -- \
    $(cd "$folder" && ls cs.c MCInst.c MCInstrDesc.c MCRegisterInfo.c SStream.c utils.c arch/*/*.c)
  mkdir -p "$out/capstone-seeds" "$out/capstone-ordinary"
  printf '\x01\x55\x48\x8b\x05\xb8\x13\x00\x00\xc5\xf8\x58\xc1\xf3\x0f\x10\x00\xc3' >"$out/capstone-seeds/x86-64"
  printf '\x03\xed\xff\xff\xeb\x04\xe0\x2d\xe5\x00\x00\xa0\xe3\x02\x30\xc1\xe7' >"$out/capstone-seeds/arm"
  printf '\x07\x80\x20\x00\x00\x80\x3f\x00\x00\x10\x43\x23\x0e\xd0\x44\x00\x80' >"$out/capstone-seeds/power"
  python3 - "$folder/suite/MC" "$out/capstone-ordinary" <<'PY'
import pathlib, re, sys
tests, ordinary = map(pathlib.Path, sys.argv[1:])
def code(folder, mode, name):
    """The instructions of the package's tests of one machine, without what they mean."""
    found = b""
    for file in sorted((tests / folder).rglob("*.cs")):
        lines = file.read_text(errors="replace").splitlines()
        if lines and re.search(mode, lines[0]):
            for line in lines[1:]:
                if line.startswith("0x") and " = " in line:
                    found += bytes(int(word, 16) for word in line.split(" = ")[0].split(","))
    return found
machines = {0: ("X86", "MODE_32,"), 1: ("X86", "MODE_64,"), 17: ("X86", "MODE_64,"), 3: ("ARM", "MODE_ARM,"), 4: ("ARM", "MODE_THUMB"),
            5: ("AArch64", ""), 6: ("Mips", "BIG_ENDIAN"), 7: ("PowerPC", ""), 8: ("Sparc", ""), 9: ("SystemZ", "")}
for index, (folder, mode) in machines.items():
    found = code(folder, mode, "")
    for part in range(min(2, len(found) // 1024 + 1)):
        piece = found[part * 4000:part * 4000 + 4000]
        if len(piece) > 200:
            (ordinary / f"{index}-{part}").write_bytes(bytes([index]) + piece)
PY
  words capstone '\xf3\x0f' '\x66\x0f' '\xf0\x48' '\xc5\xf8' '\xc4\xe2\x79' '\x62\xf1\x7c\x48' '\x8f\xe8' '\x0f\x38' '\x0f\x3a' '\x67' \
    '\x04\xe0\x2d\xe5' '\xf0\xff' '\x4e\x75'
}

# Sound: frames with checksums, and tags before them.
flac() {
  folder=$(unpack flac 'flac-[0-9]*ds')
  # shellcheck disable=SC2046 # two words
  compile flac "$folder/src/libFLAC" -lm -I "$folder/include" -I "$folder/src/libFLAC/include" -DFLAC__NO_DLL -DFLAC__HAS_OGG=0 \
    '-DPACKAGE_VERSION="1"' -DHAVE_LROUND=1 -DHAVE_STDINT_H=1 -DENABLE_64_BIT_WORDS=1 -DNDEBUG $(plain flac) -w -- bitmath.c bitreader.c cpu.c crc.c fixed.c \
    float.c format.c lpc.c md5.c memory.c stream_decoder.c
  mkdir -p "$out/flac-seeds" "$out/flac-ordinary"
  python3 - "$out/flac-seeds" "$out/flac-ordinary" <<'PY'
import hashlib, math, pathlib, random, struct, sys
class Bits:
    def __init__(self):
        self.text = []
    def put(self, value, count):
        if count:
            self.text.append(format(value & (1 << count) - 1, f"0{count}b"))
    def done(self):
        text = "".join(self.text)
        text += "0" * (-len(text) % 8)
        return bytes(int(text[at:at + 8], 2) for at in range(0, len(text), 8))
def crc(data, polynomial, width):
    value = 0
    for byte in data:
        value ^= byte << width - 8
        for _ in range(8):
            value = value << 1 ^ (polynomial if value >> width - 1 else 0)
            value &= (1 << width) - 1
    return value
def rice(bits, rest, order, size, escape):
    parameter = max(0, int(math.log2(1 + sum(map(abs, rest)) / max(1, len(rest)))))
    bits.put(0, 2), bits.put(0, 4)
    if escape:
        width = max(value.bit_length() for value in map(abs, rest)) + 1
        bits.put(15, 4), bits.put(width, 5)
        for value in rest:
            bits.put(value, width)
        return
    bits.put(parameter, 4)
    for value in rest:
        value = value * 2 if value >= 0 else -value * 2 - 1
        bits.put(1, (value >> parameter) + 1), bits.put(value, parameter)
def channel(bits, sound, kind):
    if kind == "constant":
        bits.put(0, 8), bits.put(sound[0], 16)
    elif kind == "verbatim":
        bits.put(2, 8), [bits.put(value, 16) for value in sound]
    elif isinstance(kind, int):
        rest, start = list(sound), sound[:kind]
        for _ in range(kind):
            rest = [b - a for a, b in zip(rest, rest[1:])]
        bits.put((8 | kind) << 1, 8), [bits.put(value, 16) for value in start]
        rice(bits, rest, kind, len(sound), False)
    else:
        # A predictor with own coefficients: twice the last value less the one before, in sixths of a bit.
        bits.put((32 | 1) << 1, 8), [bits.put(value, 16) for value in sound[:2]]
        bits.put(7, 4), bits.put(5, 5), bits.put(61, 8), bits.put(-30, 8)
        rest = [c - (61 * b - 30 * a >> 5) for a, b, c in zip(sound, sound[1:], sound[2:])]
        rice(bits, rest, 2, len(sound), kind == "escape")
def frame(number, sounds, kinds):
    head = Bits()
    head.put(0x3ffe << 2, 16), head.put(7, 4), head.put(9, 4), head.put(len(sounds) - 1, 4), head.put(4, 3), head.put(0, 1)
    head.put(number, 8), head.put(len(sounds[0]) - 1, 16)
    start = head.done()
    bits = Bits()
    for sound, kind in zip(sounds, kinds):
        channel(bits, sound, kind)
    data = start + bytes([crc(start, 7, 8)]) + bits.done()
    return data + struct.pack(">H", crc(data, 0x8005, 16))
def stream(frames, size, channels, blocks, sound):
    rate = 44100 << 44 | channels - 1 << 41 | 15 << 36 | len(sound[0])
    raw = b"".join(struct.pack("<h", value) for values in zip(*sound) for value in values)
    info = struct.pack(">HH", size, size) + bytes(6) + rate.to_bytes(8, "big") + hashlib.md5(raw).digest()
    blocks = [(0, info)] + blocks
    text = b"fLaC"
    for index, (kind, data) in enumerate(blocks):
        text += bytes([kind | (128 if index == len(blocks) - 1 else 0)]) + len(data).to_bytes(3, "big") + data
    return text + b"".join(frames)
def file(channels, count, size, kinds, blocks, loud):
    numbers = random.Random(count * size)
    sound = [[int(loud * math.sin(index / (9 + part)) + numbers.uniform(-loud, loud) / 50) for index in range(count * size)]
             for part in range(channels)]
    if kinds[0] == "constant":
        sound = [[7] * len(values) for values in sound]
    frames = [frame(index, [values[index * size:(index + 1) * size] for values in sound],
                    [kinds[(index + part) % len(kinds)] for part in range(channels)]) for index in range(count)]
    return stream(frames, size, channels, blocks, sound)
seeds, ordinary = map(pathlib.Path, sys.argv[1:])
def texts(*values):
    word = lambda value: struct.pack("<I", len(value)) + value
    return 4, word(b"x") + struct.pack("<I", len(values)) + b"".join(map(word, values))
(seeds / "constant.flac").write_bytes(file(1, 1, 16, ["constant"], [], 1))
(seeds / "fixed.flac").write_bytes(file(2, 1, 16, [1, "verbatim"], [texts(b"A=b")], 50))
seek = 3, b"".join(struct.pack(">QQH", at * 512, at * 900, 512) for at in range(4))
picture = 6, struct.pack(">II9sI", 3, 9, b"image/png", 1) + b"p" + struct.pack(">5I", 1, 1, 24, 0, 4) + b"data"
sheet = 5, b"1234567890123".ljust(128, b"\0") + struct.pack(">Q", 88200) + b"\x80" + bytes(258) + b"\x01" + \
    struct.pack(">QB12sB13xB", 0, 170, bytes(12), 0, 0)
for index, kinds in enumerate([[0, 1], [2, 3], [4], ["own"], ["escape", 2], ["verbatim", 1], ["own", 0, 4], [1, "constant"]]):
    if "constant" in kinds:
        kinds = [1, 2]
    blocks = [texts(b"TITLE=a", b"ARTIST=b"), (1, bytes(100)), (2, b"test" + bytes(9))] + [[seek], [picture], [sheet], []][index % 4]
    data = file(1 + index % 3, 3 + index, 512, kinds, blocks, 200 * (index + 1))
    (ordinary / f"{index}.flac").write_bytes(data)
PY
  words flac fLaC '\xff\xf8' '\xff\xf9' '\x84\x00\x00' '\x03\x00\x00' '\x05\x00\x00' '\x06\x00\x00' reference ID3 'image/png' CUESHEET \
    'TITLE=' '\xff\xf8\xc9\x08' '\xff\xf8\x69\x08'
}

# Property lists: a binary form with offsets, and XML.
plist() {
  local config
  folder=$(unpack libplist 'libplist-[0-9.]*')
  config=$(config plist config.h <<'END'
#define HAVE_MEMMEM 1
#define HAVE_STRPTIME 1
#define HAVE_TM_TM_GMTOFF 1
#define HAVE_TM_TM_ZONE 1
END
)
  compile plist "$folder" '-lm -lpthread' -I "$config" -I "$folder/include" -I "$folder/src" -I "$folder/libcnary/include" -DHAVE_CONFIG_H -D_GNU_SOURCE -w -- \
    src/base64.c src/bplist.c src/bytearray.c src/hashtable.c src/plist.c src/ptrarray.c src/time64.c src/xplist.c \
    libcnary/node.c libcnary/node_list.c
  seeds plist "$folder"/test/data/{7.plist,amp.plist,dictref1byte.bplist,order.bplist}
  ordinary plist "$folder"/test/data/{1,2,3,cdata,entities,order}.plist
  mkdir -p "$out/plist-ordinary"
  python3 - "$out/plist-ordinary" <<'PY'
import datetime, pathlib, plistlib, sys
for number in range(1, 7):
    value = {f"key {index}": [index, index * 1.5, bool(index % 2), "text \u00e9" * number, bytes(range(index % 40)),
                             datetime.datetime(2001, 1, 1 + index % 28), {"a": -index << 33, "b": plistlib.UID(index)} if number % 2
                             else {"a": [[], {}]}] for index in range(20 * number)}
    form = plistlib.FMT_BINARY
    pathlib.Path(sys.argv[1], f"{number}.bplist").write_bytes(plistlib.dumps(value, fmt=form, sort_keys=False))
PY
  cp "$folder/fuzz/xplist.dict" "$out/plist.dict"
  printf '"bplist00"\n"\\xd1\\x01\\x02"\n"\\x5f\\x10"\n"\\x33"\n"\\x80\\x01"\n' >>"$out/plist.dict"
}

# Names of a linker: types and templates of four languages.
demangle() {
  folder=$(unpack libiberty 'libiberty-[0-9]*')
  compile demangle "$folder/libiberty" '' -I "$folder/include" -DHAVE_STDLIB_H -DHAVE_STRING_H -DHAVE_LIMITS_H -DHAVE_ALLOCA_H -w -- cp-demangle.c \
    cplus-dem.c d-demangle.c rust-demangle.c safe-ctype.c xmalloc.c xexit.c xstrdup.c xmemdup.c
  mkdir -p "$out/demangle-seeds" "$out/demangle-ordinary"
  printf '\x00_RNvNtCs1234_7mycrate3foo3bar\n_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE' >"$out/demangle-seeds/rust"
  printf '\x01_D4test3fooFAiZv\n_D8demangle4testFaZaS' >"$out/demangle-seeds/d"
  printf '\x03_ZN3fooIiLi3EE3barERKSt6vectorIS_SaIS_EEPFvzE\n_Z1fIiEDTcl1gfp_EET_' >"$out/demangle-seeds/cpp"
  python3 - "$folder/libiberty/testsuite" "$out/demangle-ordinary" <<'PY'
import pathlib, sys
tests, ordinary = map(pathlib.Path, sys.argv[1:])
for language, file, starts in ((0, "rust-demangle-expected", ("_R", "_ZN")), (1, "d-demangle-expected", ("_D",)), (3, "demangle-expected", ("_Z",))):
    names = [line for line in (tests / file).read_text(errors="replace").splitlines() if line.startswith(starts)]
    for part in range(min(6, len(names) // 30 + 1)):
        text = "\n".join(names[part * 30:part * 30 + 30])
        if text:
            (ordinary / f"{language}-{part}").write_bytes(bytes([language]) + text.encode())
PY
  words demangle _ZN _ZTV _ZGV _ZZ '_D' _R _RNv Cs NtC INv I_E DpT DtE dcv St Sa NSt3__1 'Ul' 'EUl' 'Ut_' S0_ T0_ LZ Lb1E PFvE M1AFvvE DTE clE fp_ sZ sr \
    '.constprop.0' '.isra.1' '.clone.2' '17h' Kj p_ RNCNv B2_ FAiZ '__T' '__ctor' '__initZ' TypeInfo ABI B5cxx11
}

# Images: colour tables and lines of codes that grow.
giflib() {
  folder=$(unpack giflib 'giflib-[0-9.]*')
  compile giflib "$folder" '' -D_GNU_SOURCE -w -- dgif_lib.c gif_err.c gif_hash.c gifalloc.c openbsd-reallocarray.c
  seeds giflib "$folder"/pic/treescap{,-interlaced}.gif
  ordinary giflib "$folder"/pic/{fire,porsche,solid2,welcome2,x-trans}.gif "$folder/tests/wedge.gif"
  words giflib GIF87a GIF89a '\x21\xf9\x04' '\x21\xff\x0b' '\x21\xfe' '\x21\x01' '\x2c\x00\x00' 'NETSCAPE2.0' '\x00\x3b'
}

# Music of trackers: patterns of notes and effects, and samples, in fifty formats.
libxmp() {
  folder=$(unpack libxmp 'libxmp-[0-9.]*')
  # shellcheck disable=SC2046 # one word a file
  compile libxmp "$folder/src" -lm -I "$folder/include" -I "$folder/src/loaders" -DLIBXMP_NO_PROWIZARD -DLIBXMP_NO_DEPACKERS -D_REENTRANT \
    -DHAVE_FNMATCH=1 -w -- $(cd "$folder/src" &&
    find . loaders -maxdepth 1 -name '*.c' ! -name win32.c ! -name tempfile.c ! -name mkstemp.c ! -name pw_load.c | sort)
  mkdir -p "$out/libxmp-seeds" "$out/libxmp-ordinary"
  python3 - "$out/libxmp-seeds" "$out/libxmp-ordinary" <<'PY'
import math, pathlib, random, struct, sys
numbers = random.Random(1)
def wave(size, deltas=False):
    values = [int(60 * math.sin(index / 3)) for index in range(size)]
    if deltas:
        values = [values[0]] + [b - a for a, b in zip(values, values[1:])] if values else []
    return bytes(value & 255 for value in values)
def s3m(patterns, instruments, size, rows):
    orders = bytes(range(patterns)) + b"\xff" * (1 + (patterns + 1) % 2)
    head = b"song".ljust(28, b"\0") + b"\x1a\x10\0\0" + struct.pack("<6H", len(orders), instruments, patterns, 0, 0x1320, 2) + b"SCRM"
    head += bytes([64, 6, 125, 176, 0, 0]) + bytes(10) + bytes([0, 8, 1, 9]) + b"\xff" * 28 + orders
    at = len(head) + 2 * (instruments + patterns)
    body, places = b"", []
    def add(data):
        nonlocal body
        body += b"\0" * (-(at + len(body)) % 16)
        places.append((at + len(body)) // 16)
        body += data
    for index in range(instruments):
        begin = (at + len(body) + 15) // 16 + 5
        add(struct.pack("<B12sBHIIIBBBBI12s28s4s", 1, b"a.smp", 0, begin, size, 0, size // 2, 40, 0, 0, 1, 8363, b"", b"name", b"SCRS") + wave(size))
    for _ in range(patterns):
        text = b""
        for _ in range(rows):
            for channel in range(numbers.randint(0, 3)):
                text += bytes([0xe0 | channel, numbers.randint(0x20, 0x6b), numbers.randint(1, instruments), numbers.randint(0, 64),
                               numbers.randint(1, 26), numbers.randint(0, 255)])
            text += b"\0"
        text += bytes(64 - rows)
        add(struct.pack("<H", len(text) + 2) + text)
    return head + struct.pack(f"<{len(places)}H", *places) + body
def xm(patterns, instruments, size, rows, channels=4):
    text = b"Extended Module: " + b"song".ljust(20, b"\0") + b"\x1a" + b"tracker".ljust(20, b"\0") + struct.pack("<HI", 0x104, 276)
    text += struct.pack("<8H", patterns, 0, channels, patterns, instruments, 1, 6, 125) + bytes(range(patterns)).ljust(256, b"\0")
    for _ in range(patterns):
        cells = b""
        for _ in range(rows * channels):
            if numbers.random() < .6:
                cells += b"\x80"
            else:
                cells += bytes([0x9f, numbers.randint(1, 97), numbers.randint(1, instruments), numbers.randint(0x10, 0xf0), numbers.randint(0, 33),
                                numbers.randint(0, 255)])
        text += struct.pack("<IBHH", 9, 0, rows, len(cells)) + cells
    for index in range(instruments):
        envelope = struct.pack("<24H", *([0, 64, 4, 32, 8, 48] + [0] * 18))
        text += struct.pack("<I22sBHI", 263, b"instrument", 0, 1, 40) + bytes(96) + envelope * 2
        text += bytes([3, 3, 1, 1, 2, 1, 0, 2, 3, 5, 1, 2, 3, 4]) + struct.pack("<H", 512) + bytes(22)
        text += struct.pack("<IIIBbBBbB22s", size, 0, size // 2, 64, 0, index % 3, 128, 0, 0, b"sample") + wave(size, True)
    return text
def mod(patterns, size):
    text = b"song".ljust(20, b"\0")
    for index in range(31):
        text += b"sample".ljust(22, b"\0") + struct.pack(">HBBHH", size // 2 if index < 6 else 0, index % 16, 64, 0, size // 4 if index % 2 else 1)
    text += bytes([patterns, 127]) + bytes(range(patterns)).ljust(128, b"\0") + b"M.K."
    for _ in range(patterns * 64 * 4):
        period, number, effect = numbers.choice([0, 428, 381, 214, 856]), numbers.randint(0, 6), numbers.choice([0, 0, numbers.randint(0, 0xfff)])
        text += bytes([number & 0xf0 | period >> 8, period & 255, (number & 15) << 4 | effect >> 8, effect & 255])
    return text + wave(size) * 6
seeds, ordinary = map(pathlib.Path, sys.argv[1:])
(seeds / "song.s3m").write_bytes(s3m(1, 1, 8, 1))
(seeds / "song.xm").write_bytes(xm(1, 1, 8, 2, 2))
for number in range(1, 5):
    (ordinary / f"{number}.s3m").write_bytes(s3m(number * 2, number, 200 * number, 64))
    (ordinary / f"{number}.xm").write_bytes(xm(number * 2, number, 200 * number, 64))
    (ordinary / f"{number}.mod").write_bytes(mod(number, 200 * number))
PY
  ordinary libxmp "$folder/test/test.it"
  words libxmp 'Extended Module: ' SCRM SCRS SCRI IMPM IMPS IMPI M.K. 8CHN FLT4 M!K! 6CHN OKTASONG CMOD 'FORM' 'if' JN MMD0 MMD1 MMD2 MMD3 DBM0 \
    DMDL 'GDM\xfe' '\xfeGMF' PTMF 'MTM\x10' AMF 'DSMF' 'PSM\xfe' 'PSM ' RIFF 'DSMFSONG' MUSE 'FAR\xfe' '!Scream!\x1a' 'IM10' 'LIQ' 'MAS_UTrack_V00' \
    RTMM 'IIgs' 'Funk' ZXAYEMUL 'Chip' 'D.T.' 'ARCH'
}

# Packets of the network in 150 protocols.
tcpdump() {
  local config header
  folder=$(unpack tcpdump 'tcpdump-[0-9.]*')
  header=$(unpack libpcap 'libpcap-[0-9.]*')
  config=$(config tcpdump config.h <<'END'
#define HAVE_FCNTL_H 1
#define HAVE_INTTYPES_H 1
#define HAVE_MEMORY_H 1
#define HAVE_NET_IF_H 1
#define HAVE_OS_IPV6_SUPPORT 1
#define HAVE_PCAP_PCAP_INTTYPES_H 1
#define HAVE_STDINT_H 1
#define HAVE_STDLIB_H 1
#define HAVE_STRDUP 1
#define HAVE_STRFTIME 1
#define HAVE_STRINGS_H 1
#define HAVE_STRING_H 1
#define HAVE_STRSEP 1
#define HAVE_SYS_STAT_H 1
#define HAVE_SYS_TYPES_H 1
#define HAVE_UNISTD_H 1
#define SIZEOF_VOID_P 8
#define STDC_HEADERS 1
END
)
  # shellcheck disable=SC2046 # one word a file
  compile tcpdump "$folder" '' -I "$config" -I "$header" -DHAVE_CONFIG_H -D_GNU_SOURCE -w -- addrtostr.c af.c ascii_strcasecmp.c checksum.c cpack.c \
    gmpls.c in_cksum.c ipproto.c l2vpn.c machdep.c missing/strlcat.c missing/strlcpy.c netdissect-alloc.c netdissect.c nlpid.c ntp.c \
    oui.c parsenfsfh.c print.c signature.c smbutil.c strtoaddr.c util-print.c $(cd "$folder" && find . -maxdepth 1 -name 'print-*.c' ! -name print-atalk.c | sort)
  seeds tcpdump "$folder"/tests/{EIGRP_ipv6,RADIUS-port1700,babel_pad1,mpls-ldp-hello,chdlc-slarp,reason_code-10}.pcap
  ordinary tcpdump "$folder"/tests/{02-sunrise-sunset-esp,3560_CDP,802.1w_rapid_STP,DECnet_Phone,EIGRP_adjacency,HSRP_coup,ikev2four,mpls-traceroute,ppp-invalid-lengths,HDLC,ISIS_p2p_adjacency,OSPFv3_NBMA_adjacencies,babel,forces2,mptcp-v1,resp_2_inline,ieee802.11_exthdr,brcm-tag}.pcap
  words tcpdump '\xd4\xc3\xb2\xa1\x02\x00\x04\x00' '\x08\x00\x45' '\x86\xdd\x60' '\x81\x00' '\x88\x47' '\x88\xcc' '\x08\x06' '\x00\x89' '\x00\xa1' '\x02\x08' \
    '\x00\x35' '\x01\xbb' '\x00\xb3' '\x06\x99' '\x01\xf4' '\x12\xb5' '\x88\x8e' '\x88\x63' '\xaa\xaa\x03' '\x42\x42\x03' '\xfe\xfe\x03\x83' '\x02\x86' '\x07\x14' \
    '\x00\x02\x00\x01'
}

# Text in a font: tables of rules for glyphs.
harfbuzz() {
  local fonts
  folder=$(unpack harfbuzz 'harfbuzz-[0-9]*dfsg')
  # -O1: the one file takes minutes else.
  compile harfbuzz "$folder/src" -lm -O1 -DHB_NO_MT -DNDEBUG -fno-exceptions -fno-threadsafe-statics -w -- harfbuzz.cc
  fonts=$folder/test/shape/data/in-house/fonts
  seeds harfbuzz "$fonts"/{1c2c3fc37b2d4c3cb2ef726c6cdaaabd4b7f3eb9,8228d035fcd65d62ec9728fb34f42c63be93a5d3}.ttf
  seeds harfbuzz "$folder"/test/api/fonts/{chromacheck-colr,meta}.ttf
  # Every eighth of those from 2 to 60 KiB.
  # shellcheck disable=SC2046 # one word a file
  ordinary harfbuzz $(find "$fonts" -name '*.[ot]tf' -size +2k -size -60k | sort | awk 'NR % 8 == 1')
  words harfbuzz GSUB GPOS GDEF BASE JSTF morx mort kerx kern ankr trak feat lcar opbd cmap glyf loca head hhea hmtx maxp 'OS/2' \
    post name fvar avar gvar HVAR MVAR VVAR VORG 'CFF ' CFF2 COLR CPAL sbix CBDT CBLC 'SVG ' STAT MATH meta DFLT latn arab deva hebr thai mymr liga \
    mark mkmk init medi fina rlig calt ccmp kern OTTO true ttcf '\x00\x01\x00\x00'
}

# Schemas of records: a compiler, and data in JSON for what it has compiled.
flatbuffers() {
  folder=$(unpack flatbuffers 'flatbuffers-[0-9]*dfsg*')
  compile flatbuffers "$folder/src" '-lstdc++ -lm' -I "$folder/include" -DNDEBUG -w -- idl_parser.cpp idl_gen_text.cpp idl_gen_fbs.cpp util.cpp \
    code_generators.cpp
  seeds flatbuffers "$folder"/tests/{arrays_test,keyword_test,native_type_test,vector_has_test}.fbs
  ordinary flatbuffers "$folder"/tests/{monster_test,optional_scalars}.fbs
  python3 - "$folder" "$out/flatbuffers-seeds" "$out/flatbuffers-ordinary" <<'PY'
import pathlib, sys
package, seeds, ordinary = map(pathlib.Path, sys.argv[1:])
(seeds / "data.fbs").write_text('table T{a:int=3;b:[string];u:U;}table V{x:float;}union U{V}root_type T;{a:4,b:["x"],u_type:"V",u:{x:1.5e1}}')
schema = (package / "samples/monster.fbs").read_text()
(ordinary / "monster.fbs").write_text(schema + (package / "samples/monsterdata.json").read_text())
for number in range(1, 7):
    lines = [f"// Records of a shop, number {number}", "namespace shop.data;", 'attribute "priority";', 'file_identifier "SHOP";', 'file_extension "shp";',
             "enum Colour:byte (bit_flags) { Red = 0, Green, Blue = 3 }", "struct Place { x:double; y:double; names:[ubyte:4]; }"]
    tables = [f"Item{index}" for index in range(3 * number)]
    for index, name in enumerate(tables):
        lines += [f"/// Number {index}", f"table {name} {{", f"  id:ulong (key, id: 0);", f'  name:string (required, id: 1);',
                  f"  price:float = {index}.5 (id: 2);", f"  places:[Place] (id: 3);", f"  colour:Colour = Green (id: 4, deprecated);",
                  f"  next:{tables[index - 1] if index else name} (id: 5);", f"  raw:[ubyte] (id: 6, nested_flatbuffer: \"{name}\");", "}"]
    lines += [f"union Any {{ {', '.join(tables)} }}", "table Shop { items:[Item0]; any:Any; count:int = null; }",
              "rpc_service Store { Get(Item0):Shop (streaming: \"server\"); }", "root_type Shop;"]
    items = ", ".join(f'{{ id: {index}, name: "n\\u00e9 {index}", price: {index}e-1, places: [ {{ x: 1, y: 2.5, names: [1, 2, 3, 4] }} ] }}' for index in range(number))
    lines.append(f'{{ items: [ {items} ], any_type: Item0, any: {{ id: 7, name: "z" }}, count: 3 }}')
    (ordinary / f"shop-{number}.fbs").write_text("\n".join(lines) + "\n")
PY
  words flatbuffers 'table ' 'struct ' 'union ' 'enum ' 'namespace ' 'root_type ' 'file_identifier ' 'attribute ' 'include ' 'rpc_service ' bool byte \
    ubyte short int float double string uint64 '(deprecated)' '(required)' '(key)' '(id:0)' '(bit_flags)' '(force_align:8)' '(nested_flatbuffer:' \
    '(hash:\"fnv1_32\")' '(original_order)' _type null true 'nan' '[ubyte]' '///' '\\u0041' '0x1p3'
}

# A query language: a program for JSON, compiled and never run. The harness has the library, much smaller.
jq() {
  folder=$(unpack jq 'jq-[0-9.]*')
  compile jq "$folder/src" '-lm -lpthread' -I "$folder" -D_GNU_SOURCE -DNDEBUG -DIEEE_8087 -w -- bytecode.c compile.c execute.c \
    jv.c jv_alloc.c jv_aux.c jv_dtoa.c jv_file.c jv_parse.c jv_print.c jv_unicode.c lexer.c locfile.c parser.c util.c
  mkdir -p "$out/jq-seeds" "$out/jq-ordinary"
  printf '%s' '.a[1:].b? // "x\(1+2)" | if . then [.[] | -.] else {a, "b": $__loc__} end' >"$out/jq-seeds/path"
  printf '%s' 'def f($x): reduce .[] as [$a, {b: $c}] (0; . + $a); try f(1) catch . | @base64 "\(.)" | .. |= 3' >"$out/jq-seeds/function"
  python3 - "$folder" "$out/jq-ordinary" <<'PY'
import pathlib, re, sys
package, ordinary = map(pathlib.Path, sys.argv[1:])
library = (package / "src/builtin.jq").read_text()
(ordinary / "builtin").write_text(library + "\n.")
(ordinary / "half").write_text(library[:library.index("def todate")] + "\n.[0]")
blocks = (package / "tests/jq.test").read_text(errors="replace").split("\n\n")
programs = []
syntax = set("""and as break catch def elif else empty end error foreach if import include label module not or path
reduce then try __loc__ recurse map select format getpath setpath delpaths tojson length""".split())
for block in blocks:
    lines = [line for line in block.splitlines() if line and not line.startswith("#")]
    if len(lines) >= 2 and not lines[0].startswith("%%") and "import" not in lines[0] and "include" not in lines[0]:
        programs.append(lines[0])
for part in range(0, len(programs), 40):
    text = " |\n".join(f"({program})" for program in programs[part:part + 40])
    # Functions that the harness lacks.
    names = set(re.findall(r"(?<![.$@\\\w])[A-Za-z_]\w*", text)) - syntax
    uses = [(name, count) for name in sorted(names) for count in range(4)
            if re.search(rf"\b{name}\(" if count else rf"\b{name}\b(?!\()", text)]
    formals = ["", "(f)", "(f; g)", "(f; g; h)"]
    bodies = [".", "f", "f, g", "f, g, h"]
    text = "".join(f"def {name}{formals[count]}: {bodies[count]};\n" for name, count in uses) + text
    if len(text) >= 500:
        (ordinary / f"tests-{part}").write_text(text)
PY
  words jq 'def ' ' as $x | ' 'reduce ' 'foreach ' 'if ' ' then ' ' elif ' ' else ' ' end' 'try ' ' catch ' 'label $x | ' 'break $x' 'import \"a\" as b;' 'include \"a\";' \
    '..' '?//' '//=' '|=' '+=' ' and ' ' or ' ' not' '@base64' '@csv' '@json' '@sh' '@uri' '@html' '$__loc__' '$ENV' '__loc__' '.[1:2]' '.a?' '.\"a\"' '\\(1)' \
    'limit(1;' 'first(' 'path(' 'empty' 'error' 'input' 'range(' 'map(' 'select(' 'recurse(' 'getpath(' 'tojson' 'splits(' '{(\"a\"):1}' '$x::y' 'a::b'
}

for name in "$@"; do
  [[ " ${targets[*]} " == *" $name "* ]] || { echo "no target $name: $0 --list shows all" >&2; exit 2; }
  folder=
  "$name"
  echo "${folder##*/}" >"$out/$name.source"
done
