#!/usr/bin/env bash
# Build static binaries for all platforms in dist/, with their checksums and the licences of what is in them, and get the
# modules of the newest commit as a user of Go does.
set -euo pipefail
rm -rf dist && mkdir -p dist
for platform in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64; do
	os=${platform%/*} arch=${platform#*/} ext=
	[ "$os" != windows ] || ext=.exe
	echo "dist/coppice-$os-$arch$ext"
	CGO_ENABLED=0 GOOS=$os GOARCH=$arch "${GO:-go}" build -trimpath -ldflags='-s -w' \
		-o "dist/coppice-$os-$arch$ext" ./cmd/coppice
done
"${GO:-go}" -C tools run ./deps notices >dist/NOTICES # the licences of what the binaries have ask for it
cd dist && sha256sum coppice-* NOTICES >SHA256SUMS && cat SHA256SUMS
cd .. && "${GO:-go}" -C tools run ./install
