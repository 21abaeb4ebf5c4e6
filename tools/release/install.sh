#!/bin/sh
# Installs fermata @VERSION@ for this user: the program into PREFIX/bin, its manual pages and
# completions into PREFIX/share. PREFIX is ~/.local if it is not set.
#
#   curl -fsSL https://github.com/fermata-agent/fermata/releases/latest/download/install.sh | sh
#
# FERMATA_RELEASES names another place to download from.
set -eu

version=@VERSION@
prefix=${PREFIX:-$HOME/.local}
releases=${FERMATA_RELEASES:-https://github.com/fermata-agent/fermata/releases/download}

fail() {
  printf 'install.sh: %s\n' "$*" >&2
  exit 1
}

case $(uname -s) in
Linux) os=linux ;;
Darwin) os=darwin ;;
FreeBSD) os=freebsd ;;
*) fail "there is no program for $(uname -s); see the README for other ways to install" ;;
esac
case $(uname -m) in
x86_64 | amd64) arch=amd64 ;;
aarch64 | arm64) arch=arm64 ;;
*) fail "there is no program for $(uname -m); see the README for other ways to install" ;;
esac

if command -v curl >/dev/null 2>&1; then
  download() { curl -fsSL -o "$2" "$1"; }
elif command -v wget >/dev/null 2>&1; then
  download() { wget -q -O "$2" "$1"; }
else
  fail "it needs curl or wget"
fi
if command -v sha256sum >/dev/null 2>&1; then
  sum() { sha256sum "$1" | cut -d ' ' -f 1; }
elif command -v shasum >/dev/null 2>&1; then
  sum() { shasum -a 256 "$1" | cut -d ' ' -f 1; }
elif command -v sha256 >/dev/null 2>&1; then
  sum() { sha256 -q "$1"; }
else
  fail "it needs sha256sum, shasum or sha256"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
archive=fermata_${version#v}_${os}_${arch}.tar.gz
for name in "$archive" SHA256SUMS; do
  download "$releases/$version/$name" "$work/$name" || fail "cannot download $releases/$version/$name"
done
want=$(awk -v name="$archive" '$2 == name { print $1 }' "$work/SHA256SUMS")
[ -n "$want" ] || fail "SHA256SUMS does not name $archive"
[ "$(sum "$work/$archive")" = "$want" ] || fail "$archive is not what SHA256SUMS says: nothing was installed"

mkdir "$work/files"
tar -xzf "$work/$archive" -C "$work/files"
share=$prefix/share
mkdir -p "$prefix/bin" "$share/man/man1" "$share/bash-completion/completions" "$share/fish/vendor_completions.d" "$share/zsh/site-functions" "$share/fermata"
cp "$work/files/man/man1/"*.1 "$share/man/man1/"
cp "$work/files/completions/fermata.bash" "$share/bash-completion/completions/fermata"
cp "$work/files/completions/fermata.fish" "$share/fish/vendor_completions.d/"
cp "$work/files/completions/_fermata" "$share/zsh/site-functions/"
cp "$work/files/LICENSE" "$work/files/LICENSES.txt" "$work/files/CHANGELOG.md" "$share/fermata/"
# The program last, and by a rename: one that runs keeps its file.
cp "$work/files/fermata" "$prefix/bin/.fermata.new"
chmod 755 "$prefix/bin/.fermata.new"
mv -f "$prefix/bin/.fermata.new" "$prefix/bin/fermata"
printf '%s\n' "$releases" >"$share/fermata/installed-by-script"

printf 'fermata %s is in %s\n' "$version" "$prefix/bin"
case :$PATH: in
*:"$prefix/bin":*) ;;
*) printf 'hint: add it to your PATH: export PATH="%s/bin:$PATH"\n' "$prefix" ;;
esac
