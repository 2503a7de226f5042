#!/usr/bin/env bash
# Puts drydock into a directory of the runner, and that into PATH: a release whose
# checksum is right, or what is built from the action's own source. For action.yml.
#   VERSION=v0.1.0|latest|source REPOSITORY=OWNER/NAME ACTION=CHECKOUT install.sh DIR
set -euo pipefail
dir=$1
mkdir -p "$dir"
case "$(uname -s)" in
Linux) os=linux ;;
Darwin) os=darwin ;;
*) os=windows ;;
esac
case "$(uname -m)" in
x86_64 | amd64) arch=amd64 ;;
*) arch=arm64 ;;
esac
name=drydock
[ "$os" != windows ] || name=drydock.exe

if [ "$VERSION" = source ]; then
	(cd "$ACTION" && CGO_ENABLED=0 go build -trimpath -tags grpcnotrace -ldflags '-s -w' -o "$dir/$name" ./cmd/drydock)
else
	tag=$VERSION
	if [ "$tag" = latest ]; then
		tag=$(gh release view --repo "$REPOSITORY" --json tagName --jq .tagName)
	fi
	form=tar.gz
	[ "$os" != windows ] || form=zip
	archive=drydock_${tag#v}_${os}_${arch}.$form
	cd "$dir"
	gh release download "$tag" --repo "$REPOSITORY" --pattern "$archive" --pattern checksums.txt --clobber
	if command -v sha256sum >/dev/null; then
		sum=(sha256sum)
	else
		sum=(shasum -a 256)
	fi
	grep " $archive\$" checksums.txt | "${sum[@]}" -c -
	case $form in
	zip) unzip -oq "$archive" "$name" ;;
	*) tar -xzf "$archive" "$name" ;;
	esac
fi
"$dir/$name" version
if [ -n "${GITHUB_PATH:-}" ]; then
	echo "$dir" >>"$GITHUB_PATH"
fi
