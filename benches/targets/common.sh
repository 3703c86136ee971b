# Sourced by the scripts that build targets from Debian's source packages: fetching and compiling. They set
# sources (where packages are unpacked), out (where targets are left), harnesses (the folder of NAME.c),
# CC, CFLAGS and ENGINE. apt's own configuration is not changed.
# shellcheck shell=bash disable=SC2154

# The machine's own package sources, written to folder $1 as sources of source packages.
own_sources() {
  local file
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    [[ ! -e $file ]] || sed -n 's/^deb\(-src\)\? /deb-src /p' "$file" >"$1/${file##*/}.list"
  done
  for file in /etc/apt/sources.list.d/*.sources; do
    [[ ! -e $file ]] || sed 's/^Types:.*/Types: deb-src/' "$file" >"$1/${file##*/}"
  done
}

# fetch_source PACKAGE OPTIONS…: the newest version that can be had; a mirror may list one that it has lost.
fetch_source() {
  local package=$1 version
  shift
  for version in $(apt-cache "$@" showsrc --only-source "$package" | sed -n 's/^Version: //p' | sort -rVu); do
    (cd "$sources" && apt-get "$@" source "$package=$version") && return
  done
  echo "$package: no source package can be fetched (see above)" >&2
  echo "$package: try again when the machine's package archive can be reached" >&2
  return 1
}

# Unpacks the source package $1 unless a folder that matches $2 is there; prints the folder.
unpack() {
  local apt=$sources/apt found
  # Builds side by side unpack one after the other: the lock ends with the subshell that this is called in.
  exec 9>"$sources/lock"
  flock 9
  found=$(compgen -G "$sources/$2" | head -n 1 || true)
  if [[ -z $found ]]; then
    mkdir -p "$apt/lists/partial" "$apt/sources.d"
    own_sources "$apt/sources.d"
    local options=(-q -o Dir::Etc::SourceList=/dev/null -o "Dir::Etc::SourceParts=$apt/sources.d"
      -o "Dir::State::Lists=$apt/lists" -o APT::Sandbox::User=root)
    [[ -n $(ls "$apt/lists"/*Sources* 2>/dev/null) ]] || apt-get "${options[@]}" update >&2
    fetch_source "$1" "${options[@]}" >&2
    found=$(compgen -G "$sources/$2" | head -n 1)
  fi
  echo "$found"
}

# put FROM TO: a copy at once, as others may be reading it.
put() {
  cmp -s "$1" "$2" || { cp "$1" "$2.$$" && mv "$2.$$" "$2"; }
}

# compile NAME FOLDER LIBRARIES FLAGS… -- FILES…: one compiler call a file, then the link, with the
# harness if there is one.
compile() {
  local name=$1 folder=$2 libraries=$3 flags=() objects=() harness='' work
  shift 3
  while [[ $1 != -- ]]; do flags+=("$1"); shift; done
  shift
  work=$(mktemp -d)
  for file in "$harnesses/$name".{c,cc}; do
    [[ ! -e $file ]] || harness="$file $ENGINE"
  done
  # shellcheck disable=SC2086 # several words each
  for file in "$@"; do
    $CC $CFLAGS -I "$folder" "${flags[@]}" -c "$folder/$file" -o "$work/${file//\//_}.o"
    objects+=("$work/${file//\//_}.o")
  done
  # shellcheck disable=SC2086
  $CC $CFLAGS -I "$folder" "${flags[@]}" $harness "${objects[@]}" $libraries -o "$out/$name"
  rm -rf "$work"
}
