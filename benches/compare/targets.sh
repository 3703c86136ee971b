#!/usr/bin/env bash
# Builds the targets of `make compare`: libraries of Debian's source packages, file by file, with the
# harness of benches/compare/harness or benches/targets.
#
#   benches/compare/targets.sh --list           prints the names, the four of QUICK=1 first
#   benches/compare/targets.sh FOLDER NAME…
#
# Leaves FOLDER/NAME (the program), FOLDER/NAME-seeds, FOLDER/NAME.dict and FOLDER/NAME.source (package
# and version). CC, CFLAGS and ENGINE are those of benches/targets/build.sh. A new target is a function here, a
# harness, and its name in `targets`.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
sources=${CARGO_TARGET_DIR:-$root/target}/bench-sources
CC=${CC:-$root/target/release/ffuzz-cc}
CFLAGS=${CFLAGS:--O2 -g}
ENGINE=${ENGINE--fsanitize=fuzzer}
targets=(cmark libpng lcms2 expat brotli cares cjson exif freetype lua mspack pcre2 sqlite tasn1 tiff yaml zlib)

if [[ ${1:-} == --list ]]; then
  printf '%s\n' "${targets[@]}"
  exit
fi
(($# >= 2)) || { sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 2; }
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

# seeds NAME FILE…: copies of them.
seeds() {
  local name=$1
  shift
  mkdir -p "$out/$name-seeds"
  cp "$@" "$out/$name-seeds"
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

for name in "$@"; do
  [[ " ${targets[*]} " == *" $name "* ]] || { echo "no target $name: $0 --list shows all" >&2; exit 2; }
  folder=
  "$name"
  echo "${folder##*/}" >"$out/$name.source"
done
