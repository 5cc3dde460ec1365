#!/bin/sh
# Tests on a machine with a graphics card, without Go or network: of the device, of engines and of servers that compute on
# it. `make gpu-check` makes the programs; this checkout and the reference data (SLUICE_SHARED) go along:
#
#	gpu/check.sh FOLDER [PART...]
#
# Parts are kernels, conformance, without (the same on a card that shows none of what it can do without), engines-1 to
# engines-4 and servers-1 to servers-4, which are all tests of engines and servers, by their first letters, but for those
# that make check leaves out: each takes at most eight minutes, and says in a line how it went.
set -u
programs=$(cd "$1" && pwd)
shift
root=$(cd "$(dirname "$0")/.." && pwd)
log=$(mktemp -d)
# The validation layer is for the development of shaders; here kernels are timed and compiled by the card's own driver.
export SLUICE_VULKAN_BARE=1 SLUICE_TEST_DEVICE=vulkan
failed=0

part() {
	name=$1 folder=$2 program=$3
	shift 3
	cd "$root/$folder" || exit 1
	began=$(date +%s)
	if timeout 480 "$programs/$program" -test.timeout 470s -test.v "$@" >"$log/$name" 2>&1; then
		how=PASS
	else
		how=FAIL failed=1
	fi
	echo "$how $name: $(grep -c '^--- PASS' "$log/$name") passed, $(grep -c '^--- FAIL' "$log/$name") failed," \
		"$(grep -c '^--- SKIP' "$log/$name") skipped, $(($(date +%s) - began)) s"
	[ $how = PASS ] || grep -E '^ *--- FAIL|^panic|Error:|Error Trace|expected|actual' "$log/$name" | head -40
}

for name in ${*:-kernels conformance without engines-1 engines-2 engines-3 engines-4 \
	servers-1 servers-2 servers-3 servers-4}; do
	case $name in
	kernels) part kernels gpu/vulkan vulkan.test -rapid.checks 100 -test.short ;;
	conformance) part conformance gpu/vulkan vulkan.test -rapid.checks 100 \
		-test.run 'Conformance|Fixtures|Specimens|Embeddings|Mini|Golden|InOrder|Lost|Hung|Scarce|Without' ;;
	without)
		export SLUICE_VULKAN_WITHOUT=all
		part without gpu/vulkan vulkan.test -test.run 'Conformance|Mini|TwoInFlight'
		unset SLUICE_VULKAN_WITHOUT
		;;
	engines-1) part "$name" actors actors.test -test.short -test.run '^Test[A-H]' ;;
	engines-2) part "$name" actors actors.test -test.short -test.run '^Test[I-R]' ;;
	engines-3) part "$name" actors actors.test -test.short -test.run '^TestS' ;;
	engines-4) part "$name" actors actors.test -test.short -test.run '^Test[T-Z]' ;;
	servers-1) part "$name" server server.test -test.short -test.run '^Test[A-C]' ;;
	servers-2) part "$name" server server.test -test.short -test.run '^Test[D-L]' ;;
	servers-3) part "$name" server server.test -test.short -test.run '^Test[M-R]' ;;
	servers-4) part "$name" server server.test -test.short -test.run '^Test[S-Z]' ;;
	*) echo "there is no part $name" && exit 2 ;;
	esac
done
exit $failed
