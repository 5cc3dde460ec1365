#!/bin/sh
# How fast a member starts with a model that another one runs, over a link of 1 Gbit/s and 1 ms, or, without a model, how
# fast a session of the embedded model with 12,000 tokens is restored there: a row of a Markdown table for each turn.
#
#	server/cluster/link.sh [MODEL.gguf]
#
# It needs root on Linux, ip and tc (iproute2): the members have network namespaces of their own. SLUICE is the program
# (./sluice), RUNS how many turns there are (3), RATE the link's (1gbit), FLAGS what else both members are given.
set -eu
model=${1:-} sluice=${SLUICE:-./sluice} runs=${RUNS:-3} rate=${RATE:-1gbit} flags=${FLAGS:-}
dir=$(mktemp -d)
a=sluice-a-$$ b=sluice-b-$$ pids=
trap 'kill $pids 2>/dev/null || true; wait || true; ip netns del $a || true; ip netns del $b || true; rm -rf "$dir"' EXIT

ip netns add $a
ip netns add $b
ip link add va-$$ netns $a type veth peer name vb-$$ netns $b
for side in a b; do
	ns=sluice-$side-$$ dev=v$side-$$
	ip -n $ns addr add 10.9.8.$([ $side = a ] && echo 1 || echo 2)/24 dev $dev
	ip -n $ns link set $dev up
	ip -n $ns link set lo up
	# The queue is one of a card: whole packets of Ethernet, not the 64 KiB that veth hands on.
	ip netns exec $ns ethtool -K $dev tso off gso off gro off 2>/dev/null || true
	ip netns exec $ns tc qdisc add dev $dev root handle 1: tbf rate "$rate" burst 256kb latency 20ms
	ip netns exec $ns tc qdisc add dev $dev parent 1: handle 2: netem delay 1ms limit 10000 2>/dev/null ||
		echo "$side: the kernel has no netem, so nothing is delayed" >&2
done

"$sluice" cluster cert -o "$dir" --cluster bench a b >/dev/null 2>&1
# serve runs a member until it says that it serves; its log is $dir/NAME.log.
serve() {
	name=$1 at=$2
	shift 2
	SLUICE_STORE=$dir/store-$name HOME=$dir ip netns exec sluice-$name-$$ "$sluice" serve --addr 127.0.0.1:8080 --cluster bench \
		--pass "$dir/$name.pem" --member-addr $at:7777 --log info $flags "$@" >"$dir/$name.out" 2>"$dir/$name.log" &
	pids="$pids $!" last=$!
	until grep -qs serves "$dir/$name.out"; do
		kill -0 $last || { cat "$dir/$name.log" >&2; exit 1; }
		sleep 0.02
	done
}
leave() {
	kill $last && wait $last || true
	rm "$dir/b.out"
}
now() { date +%s%N; }
carried() { ip netns exec $b cat /sys/class/net/vb-$$/statistics/rx_bytes; }

# ask posts a body to a member: NAME PATH BODY. It prints the answer.
ask() { ip netns exec sluice-$1-$$ curl -sS --fail-with-body --noproxy '*' "http://127.0.0.1:8080$2" -d "$3"; }
# field is a number of an answer.
field() { sed "s/.*\"$1\":\([0-9.]*\).*/\1/"; }

if [ -z "$model" ]; then
	serve a 10.9.8.1 --name m --state "$dir/state-a" --ctx 16384
	serve b 10.9.8.2 --name m --state "$dir/state-b" --ctx 16384 --join 10.9.8.1:7777
	text=$(awk 'BEGIN { for (i = 0; i < 1660; i++) printf "the sea is %d ", i }')
	ask a /completion "{\"prompt\":\"$text\",\"n_predict\":1,\"id_slot\":1}" >/dev/null
	saved=$(ask a '/slots/1?action=save' '{"filename":"talk"}')
	echo "| tokens | bytes of its file | link | over the link | seconds to restore it | of the link's time for its bytes |"
	echo "|---|---|---|---|---|---|"
	for run in $(seq "$runs"); do
		ask b '/slots/1?action=erase' '{}' >/dev/null
		before=$(carried) began=$(now)
		restored=$(ask b '/slots/1?action=restore' '{"filename":"talk"}')
		took=$(($(now) - began)) went=$(($(carried) - before))
		awk -v k="$(echo "$restored" | field n_restored)" -v n="$(echo "$saved" | field n_written)" -v r="$rate" -v t=$took \
			-v w=$went 'BEGIN {
			printf "| %d | %d | %s | %.3f times | %.2f | %.2f times |\n", k, n, r, w/n, t/1e9, t/1e9/(n*8/(r*(r~/gbit/?1e9:1e6))) }'
	done
	exit
fi
serve a 10.9.8.1 -m "m=$model"
bytes=$(stat -c %s "$model")
echo "| model | bytes | link | seconds until it answers | MB/s | over the link | alone, from its own file |"
echo "|---|---|---|---|---|---|---|"
for run in $(seq "$runs"); do
	rm -rf "$dir/store-b"
	before=$(carried) began=$(now)
	serve b 10.9.8.2 --join 10.9.8.1:7777 -m m=member://a/m
	took=$(($(now) - began)) went=$(($(carried) - before))
	leave
	began=$(now)
	serve b 10.9.8.2 --join 10.9.8.1:7777 -m "m=$model"
	alone=$(($(now) - began))
	leave
	awk -v m="$(basename "$model" .gguf)" -v n="$bytes" -v r="$rate" -v t=$took -v w=$went -v o=$alone 'BEGIN {
		printf "| %s | %d | %s | %.2f | %.1f | %.3f times | %.2f s |\n", m, n, r, t/1e9, n*1e3/t, w/n, o/1e9 }'
done
