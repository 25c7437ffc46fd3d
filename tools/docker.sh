# Functions of .ci/run, which sources this file: the Docker daemon for the tests in a container. They use its
# install and as_root.

docker_answers() { command -v docker >/dev/null 2>&1 && timeout 10 docker version >/dev/null 2>&1; }

# stop_docker ends the daemon that start_docker started, and removes all that it kept.
docker_dir=
docker_bridge=
stop_docker() {
	local dir=$docker_dir pid i
	docker_dir=
	if [ -z "$dir" ]; then return 0; fi
	pid=$("${as_root[@]}" cat "$dir/pid" 2>/dev/null) || pid=
	if [ -n "$pid" ]; then
		"${as_root[@]}" kill "$pid" 2>/dev/null || true
		for ((i = 0; i < 100; i++)); do
			[ -d "/proc/$pid" ] || break
			[ "$i" -ne 80 ] || "${as_root[@]}" kill -9 "$pid" 2>/dev/null || true
			sleep 0.2
		done
	fi
	awk -v dir="$dir/" 'index($2, dir) == 1 { print $2 }' /proc/mounts | while read -r at; do
		"${as_root[@]}" umount -l "$at" || true
	done
	"${as_root[@]}" rm -rf "$dir"
	if [ -n "$docker_bridge" ]; then "${as_root[@]}" ip link delete docker0 2>/dev/null || true; fi
}
trap stop_docker EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# start_docker sees to a Docker daemon: the one that is there, else Debian's, on files of its own and
# without touching the firewall. Says why not, in one line, and is false then.
start_docker() {
	local packages=(docker.io) i
	if docker_answers; then return 0; fi
	if ! "${as_root[@]}" true 2>/dev/null; then echo "no Docker: none answers, and this is not root"; return 1; fi
	if ! command -v dockerd >/dev/null 2>&1; then
		echo "installing: ${packages[*]}"
		if ! install "${packages[@]}"; then echo "no Docker: ${packages[*]} cannot be installed"; return 1; fi
	fi
	# Newer Debian has the client in a package of its own.
	command -v docker >/dev/null 2>&1 || install docker-cli || true
	if docker_answers; then return 0; fi
	docker_dir=$(mktemp -d /tmp/coppice-docker.XXXXXX)
	echo '{}' >"$docker_dir/daemon.json"
	[ -e /sys/class/net/docker0 ] || docker_bridge=made
	"${as_root[@]}" dockerd --config-file="$docker_dir/daemon.json" --iptables=false --ip6tables=false \
		--storage-driver=vfs --data-root="$docker_dir/data" --exec-root="$docker_dir/exec" \
		--pidfile="$docker_dir/pid" --group="$(id -gn)" --host="unix://$docker_dir/docker.sock" \
		>"$docker_dir/log" 2>&1 </dev/null &
	export DOCKER_HOST="unix://$docker_dir/docker.sock"
	for ((i = 0; i < 120; i++)); do
		if docker_answers; then return 0; fi
		kill -0 $! 2>/dev/null || break
		sleep 0.25
	done
	echo "no Docker: dockerd does not start: $(tail -n 1 "$docker_dir/log" 2>/dev/null)"
	unset DOCKER_HOST
	stop_docker
	return 1
}
