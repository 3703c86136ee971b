#!/usr/bin/env bash
# Builds servers and a client, the targets of ffuzz --net, from Debian's source packages; their code is not changed.
#
#   benches/targets/servers.sh FOLDER [mosquitto|dnsmasq|lighttpd|redis|mbedtls|curl|proftpd|exim|cares …]
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
#   apt-get install -y --no-install-recommends perl libpcre2-dev libdb-dev    # for exim
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
sources=${CARGO_TARGET_DIR:-$root/target}/bench-sources
CC=${CC:-$root/target/release/ffuzz-cc}
CFLAGS=${CFLAGS:--O2 -g}

(($# >= 1)) || { sed -n '2,15s/^# \{0,1\}//p' "$0" >&2; exit 2; }
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
  logged "$folder" sh -c "$CC $CFLAGS -w -I. -Iinclude -Ilibrary library/*.c programs/ssl/ssl_server.c -o ssl_server"
  finish mbedtls "$folder/ssl_server" tcp:4433 ./ssl_server
}

# A client of datagrams: it asks for a name, and an input is what the name server answers.
cares() {
  local folder
  folder=$(source_of cares c-ares 'c-ares-[0-9]*[0-9]')
  logged "$folder" ./configure --quiet --disable-shared --disable-tests CC="$CC" CFLAGS="$CFLAGS -w"
  logged "$folder" make
  finish cares "$folder/src/tools/adig" udp-client ./adig -s 127.0.0.1 -t ANY www.lan
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

# An anonymous user may read the folder files. "nofork": no process for each connection.
proftpd() {
  local folder
  folder=$(source_of proftpd proftpd-dfsg 'proftpd-dfsg-[0-9]*')
  logged "$folder" ./configure --disable-auth-pam --disable-cap --disable-ident --disable-nls --disable-trace \
    --enable-devel=nodaemon:nofork CC="$CC" CFLAGS="$CFLAGS -w"
  logged "$folder" make proftpd
  mkdir -p "$out/proftpd/files/folder"
  echo 'some text' >"$out/proftpd/files/a.txt"
  echo 'more text' >"$out/proftpd/files/folder/b"
  cat >"$out/proftpd/proftpd.conf" <<CONF
Port 2121
User $(id -un)
Group $(id -gn)
UseIPv6 off
UseReverseDNS off
WtmpLog off
SystemLog none
TransferLog none
ScoreboardFile none
PidFile /dev/null
DelayEngine off
<Anonymous $out/proftpd/files>
  User $(id -un)
  Group $(id -gn)
  UserAlias anonymous $(id -un)
  RequireValidShell off
  RootLogin on
  <Limit WRITE>
    DenyAll
  </Limit>
</Anonymous>
CONF
  finish proftpd "$folder/proftpd" tcp:2121 ./proftpd -n -q -c "$out/proftpd/proftpd.conf"
}

# It takes mail for the domain lan, up to its end, and then refuses it: nothing is kept. It does not run as root.
exim() {
  local folder user
  echo '#include <pcre2.h>
#include <db.h>' | cpp -DPCRE2_CODE_UNIT_WIDTH=8 >/dev/null 2>&1 && command -v perl >/dev/null || {
    echo 'exim needs perl, libpcre2-dev and libdb-dev: see the head of servers.sh' >&2
    return 1
  }
  folder=$(source_of exim exim4 'exim4-[0-9]*[0-9]')
  user=$(id -un)
  [[ $user != root ]] || user=mail
  mkdir -p "$out/exim/spool"
  chown "$user" "$out/exim/spool"
  cat >"$folder/Local/Makefile" <<CONF
BIN_DIRECTORY=$out/exim
CONFIGURE_FILE=$out/exim/exim.conf
CONFIGURE_OWNER=$user
EXIM_USER=$user
EXIM_GROUP=$(id -gn "$user")
SPOOL_DIRECTORY=$out/exim/spool
LOG_FILE_PATH=syslog
FIXED_NEVER_USERS=
ROUTER_ACCEPT=yes
TRANSPORT_APPENDFILE=yes
LOOKUP_LSEARCH=yes
AUTH_PLAINTEXT=yes
AUTH_CRAM_MD5=yes
PCRE2_CONFIG=yes
DISABLE_TLS=yes
DISABLE_DKIM=yes
DISABLE_DNSSEC=yes
HEADERS_CHARSET="ISO-8859-1"
CC=$CC
CFLAGS=$CFLAGS -w
CONF
  logged "$folder" make
  cat >"$out/exim/exim.conf" <<'CONF'
primary_hostname = mail.lan
daemon_smtp_ports = 2525
local_interfaces = 127.0.0.1
keep_environment =
host_lookup =
rfc1413_query_timeout = 0s
queue_only = true
log_selector = -all
acl_smtp_rcpt = taken
acl_smtp_data = refused
acl_smtp_vrfy = taken
acl_smtp_expn = taken
domainlist local_domains = lan
begin acl
taken:
  require verify = sender
  accept domains = +local_domains
         verify = recipient
  deny message = no relay
refused:
  deny message = $message_size bytes, from $sender_address
begin routers
all:
  driver = accept
  domains = +local_domains
  transport = none
begin transports
none:
  driver = appendfile
  file = /dev/null
begin authenticators
plain:
  driver = plaintext
  public_name = PLAIN
  server_condition = ${if eq{$auth2}{user}}
  server_set_id = $auth2
cram:
  driver = cram_md5
  public_name = CRAM-MD5
  server_secret = secret
  server_set_id = $auth1
CONF
  finish exim "$folder"/build-*/exim tcp:2525 ./exim -bdf -oP /dev/null
}

for name in "$@"; do
  case $name in
    mosquitto | dnsmasq | lighttpd | redis | mbedtls | curl | proftpd | exim | cares) "$name" ;;
    *) echo "no target $name: see the head of $0" >&2; exit 2 ;;
  esac
done
