#!/usr/bin/env bash
# Prints file, scenario, seed and trace hash of every library scenario, one a line:
# run it before and after a change that must not change behaviour, and diff the two.
#   hack/hashes.sh [DRYDOCK] > FILE     SEEDS="0 3 11" LIBRARY=scenarios/library
set -euo pipefail
drydock=${1:-bin/drydock}
for seed in ${SEEDS:-0 3 11}; do
	# A scenario that fails has a hash, too.
	"$drydock" run --seed "$seed" -o json "${LIBRARY:-scenarios/library}" 2>/dev/null | tr -d '",' |
		awk -v seed="$seed" '
			$1 == "scenario:" { name = $2 }
			$1 == "file:" { file = $2 }
			$1 == "hash:" { print file, name, seed, $2 }' || true
done | sort
