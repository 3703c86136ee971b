#!/usr/bin/env bash
# Builds servers and a client, the targets of ffuzz --net, from Debian's source packages; their code is not changed.
#
#   benches/targets/servers.sh FOLDER [mosquitto|dnsmasq|lighttpd|redis|mbedtls|curl …]
#
# Leaves FOLDER/NAME, which has the program, its configuration, the folder seeds, the file net (the value of --net)
# and the file command (the command line, to be run in that folder):
#
#   cd FOLDER/mosquitto && ffuzz --net "$(cat net)" -i seeds -o /tmp/out -- $(cat command)
#
# CC and CFLAGS come from the environment; CC is ffuzz-cc, afl-clang-fast or any compiler. The sources are kept in
# target/bench-sources. What was compiled is kept as FOLDER/NAME/source, for those who look for a line of a report.
#
#   apt-get install -y --no-install-recommends make python3 dpkg-dev xz-utils patch pkg-config
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
sources=${CARGO_TARGET_DIR:-$root/target}/bench-sources
CC=${CC:-$root/target/release/ffuzz-cc}
CFLAGS=${CFLAGS:--O2 -g}

(($# >= 1)) || { sed -n '2,14s/^# \{0,1\}//p' "$0" >&2; exit 2; }
mkdir -p "$1" "$sources"
out=$(cd "$1" && pwd)
shift
(($#)) || set -- mosquitto dnsmasq lighttpd redis mbedtls curl

# shellcheck source-path=SCRIPTDIR
. "$here/common.sh"

for tool in make python3 dpkg-source xz patch pkg-config "${CC%% *}"; do
  command -v "$tool" >/dev/null || { echo "servers.sh: $tool is missing: see the head of $0" >&2; exit 1; }
done

# source_of NAME PACKAGE PATTERN: a copy of the source to compile in, as each compiler needs its own; prints it.
source_of() {
  local folder
  folder=$(unpack "$2" "$3")
  rm -rf "${out:?}/$1"
  mkdir -p "$out/$1"
  cp -a "$folder" "$out/$1/source"
  echo "$out/$1/source"
}

# logged FOLDER COMMAND…: runs the command in the folder; its output is only told of if it fails.
logged() {
  local folder=$1
  shift
  (cd "$folder" && "$@") </dev/null >>"$folder/build.log" 2>&1 || {
    tail -n 5 "$folder/build.log" >&2
    echo "${*:1:2} fails: read $folder/build.log" >&2
    return 1
  }
}

# finish NAME PROGRAM NET COMMAND…: what a folder has besides the configuration. The seeds are those of NAME.
finish() {
  local name=$1 program=$2 net=$3
  shift 3
  cp "$program" "$out/$name/"
  echo "$net" >"$out/$name/net"
  echo "$*" >"$out/$name/command"
  python3 "$here/servers/seeds.py" "$name" "$out/$name/seeds"
  echo "$out/$name: $(wc -c <"$out/$name/${program##*/}") bytes, --net $net"
}

mosquitto() {
  local folder
  folder=$(source_of mosquitto mosquitto 'mosquitto-[0-9]*[0-9]')
  logged "$folder" make -C src CC="$CC" CFLAGS="$CFLAGS -w" WITH_TLS=no WITH_CJSON=no WITH_DOCS=no \
    WITH_SYSTEMD=no WITH_WEBSOCKETS=no WITH_PERSISTENCE=no WITH_SRV=no WITH_STRIP=no mosquitto
  printf 'listener 1883\nallow_anonymous true\nlog_dest none\n' >"$out/mosquitto/mosquitto.conf"
  finish mosquitto "$folder/src/mosquitto" tcp:1883 ./mosquitto -c mosquitto.conf
}

# One program, two targets. -d: no daemon, and no process for each connection.
dnsmasq() {
  local folder options=(-d -C dnsmasq.conf)
  folder=$(source_of dnsmasq-udp dnsmasq 'dnsmasq-[0-9]*[0-9]')
  logged "$folder" make CC="$CC" CFLAGS="$CFLAGS -w"
  cat >"$out/dnsmasq-udp/dnsmasq.conf" <<'CONF'
port=53
user=root
pid-file=
no-resolv
no-hosts
address=/com/1.2.3.4
txt-record=t.lan,some text
mx-host=lan,mail.lan,10
srv-host=_sip._tcp.lan,sip.lan,5060
host-record=sip.lan,1.2.3.5
cname=alias.lan,sip.lan
CONF
  mkdir -p "$out/dnsmasq-tcp"
  cp "$out/dnsmasq-udp/dnsmasq.conf" "$out/dnsmasq-tcp/"
  finish dnsmasq-udp "$folder/src/dnsmasq" udp:53 ./dnsmasq "${options[@]}"
  finish dnsmasq-tcp "$folder/src/dnsmasq" tcp:53 ./dnsmasq "${options[@]}"
}

# The modules are parts of the program: those that are loaded later would not be among its edges.
lighttpd() {
  local folder module
  folder=$(source_of lighttpd lighttpd 'lighttpd-[0-9]*[0-9]')
  for module in access alias indexfile redirect rewrite setenv simple_vhost status dirlisting staticfile; do
    echo "PLUGIN_INIT(mod_$module)"
  done >"$folder/src/plugin-static.h"
  logged "$folder" env LIGHTTPD_STATIC=yes ./configure --enable-static --disable-shared --without-pcre2 \
    --without-zlib --without-openssl CC="$CC" CFLAGS="$CFLAGS -w"
  logged "$folder" make -C src parsers versionstamp
  logged "$folder" make -C src lighttpd
  mkdir -p "$out/lighttpd/www/folder"
  echo '<html>page</html>' >"$out/lighttpd/www/index.html"
  echo 'some text' >"$out/lighttpd/www/a.txt"
  echo 'more text' >"$out/lighttpd/www/folder/b"
  cat >"$out/lighttpd/lighttpd.conf" <<'CONF'
server.port = 8080
server.document-root = var.CWD + "/www"
server.modules = ("mod_access", "mod_alias", "mod_redirect", "mod_rewrite", "mod_setenv", "mod_status")
index-file.names = ("index.html")
mimetype.assign = (".html" => "text/html", ".txt" => "text/plain", "" => "application/octet-stream")
dir-listing.activate = "enable"
status.status-url = "/status"
alias.url = ("/alias/" => var.CWD + "/www/folder/")
url.access-deny = ("~")
CONF
  finish lighttpd "$folder/src/lighttpd" tcp:8080 ./lighttpd -D -f lighttpd.conf
}

# No command writes a file: the next run would read what it wrote. None makes another process, which would be the one
# that goes on.
redis() {
  local folder command
  folder=$(source_of redis redis 'redis-[0-9]*[0-9]')
  logged "$folder" make -C src CC="$CC" CFLAGS="$CFLAGS -w" OPTIMIZATION=-O2 MALLOC=libc BUILD_TLS=no \
    USE_SYSTEMD=no redis-server
  printf 'port 6379\nbind 127.0.0.1\nsave ""\nappendonly no\ndaemonize no\n' >"$out/redis/redis.conf"
  for command in CONFIG SAVE BGSAVE BGREWRITEAOF SHUTDOWN SYNC PSYNC; do
    echo "rename-command $command \"\""
  done >>"$out/redis/redis.conf"
  finish redis "$folder/src/redis-server" tcp:6379 ./redis-server redis.conf
}

# The example server: it has its certificate in itself. Without MBEDTLS_TIMING_C, as the counter of the processor,
# which differs in each run, is otherwise a part of its random numbers.
mbedtls() {
  local folder
  folder=$(source_of mbedtls mbedtls 'mbedtls-[0-9]*[0-9]')
  echo '#undef MBEDTLS_TIMING_C' >"$folder/no-timing.h"
  logged "$folder" sh -c "$CC $CFLAGS -w -I. -Iinclude -Ilibrary -DMBEDTLS_USER_CONFIG_FILE='\"no-timing.h\"' \
    library/*.c programs/ssl/ssl_server.c -o ssl_server"
  finish mbedtls "$folder/ssl_server" tcp:4433 ./ssl_server
}

# A client: it asks, and an input is what the server answers, here over as many connections as it is sent to.
curl() {
  local folder
  folder=$(source_of curl curl 'curl-[0-9]*[0-9]')
  logged "$folder" ./configure --quiet --disable-shared --without-ssl --without-zlib --without-brotli --without-zstd \
    --without-libpsl --without-libidn2 --without-nghttp2 --without-librtmp --disable-ldap --disable-manual \
    --disable-threaded-resolver --disable-pthreads CC="$CC" CFLAGS="$CFLAGS -w"
  logged "$folder" make -C lib
  logged "$folder" make -C src curl
  finish curl "$folder/src/curl" tcp-client ./curl -s -L -b none http://127.0.0.1:81/
}

for name in "$@"; do
  case $name in
    mosquitto | dnsmasq | lighttpd | redis | mbedtls | curl) "$name" ;;
    *) echo "no target $name: see the head of $0" >&2; exit 2 ;;
  esac
done
