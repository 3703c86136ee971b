#!/usr/bin/env bash
# Builds the benchmark targets from Debian's source packages, and tiny: cJSON, zlib and libpng with a
# harness; xmllint, the sqlite3 shell and pngfix as they are.
#
#   benches/targets/build.sh FOLDER [cjson|zlib|libpng|tiny|xmllint|sqlite3|pngfix …]
#   CC=installed benches/targets/build.sh FOLDER [xmllint|sqlite3|pngfix|tiffinfo|readelf|unzip|webpinfo …]
#
# Leaves FOLDER/NAME (the program) and FOLDER/NAME-seeds; with CC=installed, the program is the machine's own.
# CC, CFLAGS and ENGINE (what links the harness to a fuzzer; -fsanitize=fuzzer) come from the environment; clang's
# own libFuzzer wants -fsanitize=fuzzer-no-link in CFLAGS. The sources are kept in target/bench-sources; they come
# from where the machine gets its packages, and apt's own configuration is not changed.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
sources=${CARGO_TARGET_DIR:-$root/target}/bench-sources
CC=${CC:-$root/target/release/ffuzz-cc}
CFLAGS=${CFLAGS:--O2 -g}
ENGINE=${ENGINE--fsanitize=fuzzer}

(($# >= 1)) || { sed -n '2,11s/^# \{0,1\}//p' "$0" >&2; exit 2; }
mkdir -p "$1" "$sources"
out=$(cd "$1" && pwd)
shift
(($#)) || set -- cjson zlib libpng tiny

harnesses=$here
# shellcheck source-path=SCRIPTDIR
. "$here/common.sh"

if [[ $CC == installed ]]; then
  compile() {
    local program
    program=$(type -P "$1") || {
      echo "$1 is not installed" >&2
      echo 'apt-get install libxml2-utils sqlite3 libpng-tools libtiff-tools binutils unzip webp' >&2
      return 1
    }
    ln -sf "$program" "$out/$1"
  }
fi

cjson() {
  local folder seed
  folder=$(unpack cjson 'cjson-[0-9.]*')
  compile cjson "$folder" -lm -DNDEBUG -- cJSON.c
  mkdir -p "$out/cjson-seeds"
  printf '\x00{"a":[1,2.5e3,true,null,"x\\u00e9"],"b":{}}' >"$out/cjson-seeds/unformatted"
  printf '\x07[1,{"k":"v"}]' >"$out/cjson-seeds/minified"
}

zlib() {
  local folder
  folder=$(unpack zlib 'zlib-[0-9.]*dfsg')
  compile zlib "$folder" '' -DNDEBUG -- adler32.c crc32.c inflate.c inffast.c inftrees.c zutil.c
  mkdir -p "$out/zlib-seeds"
  python3 - "$out/zlib-seeds" <<'PY'
import gzip, pathlib, sys, zlib
folder, text = pathlib.Path(sys.argv[1]), b"hello hello hello world " * 20
raw = zlib.compressobj(9, zlib.DEFLATED, -15)
(folder / "zlib").write_bytes(b"\x05" + zlib.compress(text, 9))
(folder / "gzip").write_bytes(b"\x06" + gzip.compress(text, mtime=0))
(folder / "raw").write_bytes(b"\x04" + raw.compress(text) + raw.flush())
PY
}

# libpng_program NAME FOLDER FILES…: these files with the whole library.
libpng_program() {
  local name=$1 folder=$2 image
  shift 2
  put "$folder/scripts/pnglibconf.h.prebuilt" "$folder/pnglibconf.h"
  compile "$name" "$folder" '-lz -lm' -DPNG_INTEL_SSE_OPT=0 -- png.c pngerror.c pngget.c pngmem.c \
    pngpread.c pngread.c pngrio.c pngrtran.c pngrutil.c pngset.c pngtrans.c pngwio.c pngwrite.c \
    pngwtran.c pngwutil.c "$@"
  mkdir -p "$out/$name-seeds"
  for image in basn0g01 basn2c08 basn3p02 basn4a08 basn6a16; do
    cp "$folder/contrib/pngsuite/$image.png" "$out/$name-seeds"
  done
}

libpng() {
  local folder
  folder=$(unpack libpng1.6 'libpng1.6-[0-9.]*')
  libpng_program libpng "$folder"
}

pngfix() {
  local folder
  folder=$(unpack libpng1.6 'libpng1.6-[0-9.]*')
  libpng_program pngfix "$folder" contrib/tools/pngfix.c
}

tiny() {
  compile tiny "$root/runtime/include" '' --
  mkdir -p "$out/tiny-seeds"
  echo 'Some words 12' >"$out/tiny-seeds/words"
}

# configured FOLDER OPTIONS…: runs the source's configure in a folder of its own, once; prints that.
configured() {
  local folder=$1 work=$1-configured
  shift
  if [[ ! -e $work/Makefile ]]; then
    mkdir -p "$work"
    (cd "$work" && "$folder/configure" "$@" CC=clang-19 >configure.log 2>&1) || {
      echo "configure fails: read $work/configure.log" >&2
      return 1
    }
  fi
  echo "$work"
}

# FUZZING_BUILD_MODE…: no random hash seed, with which no two runs would be alike.
xmllint() {
  local folder work
  folder=$(unpack libxml2 'libxml2-[0-9.]*dfsg')
  work=$(configured "$folder" --disable-shared --without-python --without-lzma --without-zlib \
    --without-http --without-ftp --without-threads --without-modules)
  compile xmllint "$folder" -lm -I "$work" -I "$work/include" -I "$folder/include" \
    -DFUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION -w -- SAX.c entities.c encoding.c error.c \
    parserInternals.c parser.c tree.c hash.c list.c xmlIO.c xmlmemory.c uri.c valid.c xlink.c \
    HTMLparser.c HTMLtree.c debugXML.c xpath.c xpointer.c xinclude.c catalog.c globals.c threads.c \
    c14n.c xmlstring.c buf.c xmlregexp.c xmlschemas.c xmlschemastypes.c xmlunicode.c xmlreader.c \
    relaxng.c dict.c SAX2.c xmlwriter.c legacy.c chvalid.c pattern.c xmlsave.c xmlmodule.c \
    schematron.c xmllint.c
  mkdir -p "$out/xmllint-seeds"
  printf '<?xml version="1.0"?>\n<!DOCTYPE a [<!ENTITY e "text"><!ELEMENT a ANY>]>\n<a b="c">&e;<d/></a>\n' \
    >"$out/xmllint-seeds/entity"
  printf '<a xmlns:n="urn:x"><n:b c="1">x &lt; y</n:b><!-- no --><?pi d?><![CDATA[<]]></a>' \
    >"$out/xmllint-seeds/namespace"
}

# No recursive query among the seeds: a run that loops to its limit costs the same however it is made.
sqlite3() {
  local folder work
  command -v tclsh >/dev/null || { echo 'sqlite3 needs tclsh: apt-get install tcl' >&2; return 1; }
  folder=$(unpack sqlite3 'sqlite3-[0-9.]*[0-9]')
  work=$(configured "$folder" --disable-tcl)
  [[ -e $work/shell.c && -e $work/sqlite3.c ]] || make -s -C "$work" sqlite3.c shell.c >&2
  compile sqlite3 "$work" '-lm -ldl -lpthread' -DSQLITE_THREADSAFE=0 -w -- sqlite3.c shell.c
  mkdir -p "$out/sqlite3-seeds"
  printf 'create table t(a,b primary key);insert into t values(1,2),(3,"x");select a+1,count(*) from t group by b;\n' \
    >"$out/sqlite3-seeds/table"
  printf "select upper(substr('abc',2)),json('[1]'),hex(x'00ff'),date(0) where 1 in (select 2 union select 1);\n" \
    >"$out/sqlite3-seeds/functions"
}

# Those below are only to be had as they are installed.
tiffinfo() {
  compile tiffinfo
  mkdir -p "$out/tiffinfo-seeds"
  printf 'P5 4 4 255\n0123456789abcdef' >"$out/grey.pgm"
  ppm2tiff -c none "$out/grey.pgm" "$out/tiffinfo-seeds/grey"
  ppm2tiff -c packbits "$out/grey.pgm" "$out/tiffinfo-seeds/packed"
  ppm2tiff -c lzw "$out/grey.pgm" "$out/tiffinfo-seeds/lzw"
  rm "$out/grey.pgm"
}

readelf() {
  compile readelf
  mkdir -p "$out/readelf-seeds"
  echo 'int f(int x) { return x + 1; }' | clang-19 -x c -g -O1 -c -o "$out/readelf-seeds/object" -
}

unzip() {
  compile unzip
  mkdir -p "$out/unzip-seeds"
  python3 - "$out/unzip-seeds" <<'PY'
import pathlib, sys, zipfile
for name, method in ("stored", zipfile.ZIP_STORED), ("deflated", zipfile.ZIP_DEFLATED), ("bzip2", zipfile.ZIP_BZIP2):
    with zipfile.ZipFile(pathlib.Path(sys.argv[1]) / name, "w", method) as archive:
        archive.writestr("folder/a.txt", "hello hello hello hello")
        archive.writestr("b", "")
PY
}

webpinfo() {
  compile webpinfo
  mkdir -p "$out/webpinfo-seeds"
  printf 'P6\n2 2\n255\n0123456789ab' >"$out/four.ppm"
  cwebp -quiet "$out/four.ppm" -o "$out/webpinfo-seeds/lossy"
  cwebp -quiet -lossless "$out/four.ppm" -o "$out/webpinfo-seeds/lossless"
  rm "$out/four.ppm"
}

for name in "$@"; do
  case $name in
    cjson | zlib | libpng | tiny | xmllint | sqlite3 | pngfix | tiffinfo | readelf | unzip | webpinfo) "$name" ;;
    *) echo "no target $name: see the head of $0" >&2; exit 2 ;;
  esac
done
