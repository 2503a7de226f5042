# Everything here is a short form of go commands; Go is all that is needed, but
# for `make race`, whose detector needs gcc.

GO    ?= go
# The scenario that `make demo` runs.
DEMO  ?= scenarios/library/first/one-pod.yaml
# What `make seeds` runs, and with which seeds.
LIBRARY ?= scenarios/library
SEEDS ?= 1-20
# What `make bench` measures, and how.
BENCH     ?= .
BENCHTIME ?= 1s
BENCHPKGS ?= ./ground/... ./sim/... ./fakecri/... ./kubelet/... ./scenarios/... ./scale/...
# How long `make fuzz` spends on each target.
FUZZTIME ?= 10s
# How long `make soak` lasts.
SOAK     ?= 10m
KILLS    ?= 20
# How often `make devices` kills.
ROUNDS   ?= 12
# Where goroutines are: the ground, and what stands on its edges.
RACEPKGS ?= $(RACEEDGES) ./cmd/drydock ./conformance/...
# Those that CI runs: the others put the same edges together, and take as long.
RACEEDGES = ./ground/loop/... ./sim ./sim/facade ./fakecri/server/... ./fakecri/fakecritest \
	./kubelet/real/... ./kubelet/app ./kubelet/internal/server ./kubelet/internal/clientgo ./kubelet/internal/certificate
# Under how many seeds `make elision` checks random lifecycles.
LIFECYCLES ?= 40
# How many random clusters `make workloads` tries, and with how many seeds `make cluster-seeds`
# replays each recorded case.
WORKLOADS     ?= 1000
CLUSTER_SEEDS ?= 50
# What else `make day` passes on, such as --seeds 1-3.
DAYFLAGS ?=
# What else `make verify` passes on, such as --set 'spec.nodes[0].count=250'.
VERIFYFLAGS ?=
# What else `make conformance` passes on, such as --focus.
CONFORMANCEFLAGS ?=
# What else `make mutate` passes on, such as -seed 2.
MUTATEFLAGS ?=
# What make cross builds, what releases are for, and how a release is built:
# golang.org/x/net/trace, which gRPC would draw in, looks up methods by name, so that the linker
# keeps all of them.
CROSS        ?= darwin/arm64 windows/amd64
TARGETS       = linux/amd64 linux/arm64 darwin/arm64 darwin/amd64 windows/amd64
RELEASEFLAGS  = -trimpath -tags grpcnotrace -ldflags '-s -w'
# The version of golangci-lint, which .golangci.yml is for.
GOLANGCI = v2.15.0
SOURCES   = cmd conformance docs fakecri ground hack kubelet scale scenarios sim up

.PHONY: all build actor conformance conformance-containerd2 conformance-fakecri day demo test lint golangci loc race elision elision-checked bumps clients seeds bench fuzz soak csi devices verify cross release-check clean

all: build

build: actor ## the drydock command, as bin/drydock
	$(GO) build -o bin/drydock ./cmd/drydock

actor: ## the test program of the conformance checks, which drydock embeds
	$(GO) generate ./conformance/images

conformance: build ## the checks of a CRI runtime, on Debian's containerd (root; skipped by name where that can't run)
	hack/conformance.sh containerd $(CONFORMANCEFLAGS)

conformance-containerd2: build ## the same on containerd 2.x, built from its module
	hack/conformance.sh containerd2 $(CONFORMANCEFLAGS)

conformance-fakecri: build ## the same on drydock fakecri
	hack/conformance.sh fakecri $(CONFORMANCEFLAGS)

demo: ## one library scenario, with its timeline
	$(GO) run ./cmd/drydock run $(DEMO)

# Tests do not vet: lint does, once.
test: ## unit tests, then the library as a suite in parallel
	$(GO) test -vet=off -timeout 10m $$($(GO) list ./... | grep -v /scenarios/suite)
	$(GO) tool ginkgo -p --timeout 10m ./scenarios/suite

lint: ## gofmt, go vet, the analyzer of determinism and rooms; lists what it was told to allow
	@out="$$(gofmt -l $(SOURCES))"; if [ -n "$$out" ]; then echo "not gofmt'ed:"; echo "$$out"; exit 1; fi
	$(GO) vet ./...
	$(GO) run ./cmd/drydock-lint -stale -list-unordered ./...

golangci: bin/golangci-lint-$(GOLANGCI) ## the linters of .golangci.yml
	$< run

bin/golangci-lint-$(GOLANGCI):
	GOBIN=$(CURDIR)/bin $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI)
	mv bin/golangci-lint $@

loc: ## lines of code and of comments, by package
	@$(GO) run ./hack/loc

race: ## tests of what has goroutines, under the race detector (needs gcc)
	CGO_ENABLED=1 $(GO) test -vet=off -race -short -timeout 20m $(RACEPKGS)

.PHONY: race-edges
race-edges: ## the part of it that CI runs
	@$(MAKE) --no-print-directory race RACEPKGS='$(RACEEDGES)'

elision: elision-checked ## the library with nothing left out, and with a look at each pass that is, as in random lifecycles
	$(GO) run ./cmd/drydock run --no-elide $(LIBRARY)

elision-checked: ## the second half of that, which CI runs
	$(GO) run ./cmd/drydock run --check-elision $(LIBRARY)
	$(GO) test ./sim -run RandomLifecycles -lifecycle.seeds $(LIFECYCLES) -lifecycle.check 1

bumps: ## remove each call that tells elision of a change, and say who misses it; half an hour
	$(GO) run ./hack/bumps

clients: ## Helm, controller-runtime, kubectl and client-go as clients of drydock up (their modules are examples/clients' own)
	cd examples/clients && $(GO) test ./...

.PHONY: operators
operators: ## controllers in virtual time: a small operator, cert-manager's, Cluster API's, and suites for envtest (their modules are the examples' own)
	@set -e; for dir in operator certmanager clusterapi envtest; do (cd examples/$$dir && $(GO) test -timeout 30m ./...); done

.PHONY: charts
charts: ## charts of Helm and first applications, as they are (Helm is examples/charts' own)
	cd examples/charts && $(GO) test ./...

seeds: ## the library under more seeds
	$(GO) run ./cmd/drydock run --seeds $(SEEDS) $(LIBRARY)

.PHONY: workloads cluster-seeds
workloads: ## random clusters with workloads, drains, outages: what is at rest judged by an oracle; WORKLOADS=1000
	$(GO) test ./sim/workloads -run TestRandomWorkloads -workloads.seeds $(WORKLOADS) -timeout 2h -v

cluster-seeds: ## each recorded case of the control plane ends alike, whatever the seed; CLUSTER_SEEDS=50
	$(GO) test ./scenarios/parity/cluster -run TestSeedsRestAlike -cluster.seeds $(CLUSTER_SEEDS) -timeout 1h -v

day: ## a hundred nodes for a day, 5,000 that lose a rack, the API or their kubelets, 1,000 with GPUs; with a census of what is left
	$(GO) run ./cmd/drydock run --census $(DAYFLAGS) scenarios/long

verify: ## a thousand nodes with churn and faults on 1, 2 and 4 cores: one hash
	$(GO) run ./cmd/drydock run --verify $(VERIFYFLAGS) scenarios/long/faults-and-churn.yaml

cross: ## the command, built for a Mac and for Windows
	@set -e; for t in $(CROSS); do echo "building for $$t"; \
		CGO_ENABLED=0 GOOS=$${t%/*} GOARCH=$${t#*/} $(GO) build $(RELEASEFLAGS) -o bin/cross/ ./cmd/drydock; done

.PHONY: typecheck
typecheck: ## everything and its tests would compile for each other target of a release: a minute, where make cross takes ten
	$(GO) run ./hack/typecheck -targets '$(filter-out linux/amd64,$(TARGETS))'

.PHONY: man snapshot mutate
man: ## the manual's pages, as bin/man
	$(GO) test ./cmd/drydock -count=1 -run '^TestManPages$$' -man bin/man

snapshot: ## all of a release but its publishing, as dist (goreleaser and syft)
	goreleaser release --snapshot --clean --skip=publish,ko

mutate: ## 300 mistakes in the code, and which of them no test notices; an hour or two
	$(GO) run ./hack/mutate $(MUTATEFLAGS)

release-check: ## what a release needs: all targets build and vet, the binary is small enough
	GO='$(GO)' hack/release-check.sh

bench: ## the benchmarks that the docs cite
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) -benchmem $(BENCHPKGS)

fuzz: ## every fuzz target for a short while
	@set -e; \
	grep -rlE --include='*_test.go' '^func Fuzz[A-Z]' $(SOURCES) | while read -r file; do \
		for target in $$(sed -nE 's/^func (Fuzz[A-Za-z0-9_]+)\(.*/\1/p' "$$file"); do \
			echo "$$file $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "./$$(dirname "$$file")"; \
		done; \
	done

soak: ## ten static pods on containerd, with the kubelet killed in between; SOAK=10m is how long (needs root)
	@hack/soak.sh $(SOAK) || { code=$$?; [ $$code -eq 77 ] || exit $$code; }

devices: build ## the kubelet and Kubernetes' own device plugin and DRA driver killed while pods with devices come and go (root; hack/devices.sh says what it needs)
	@hack/devices.sh $(ROUNDS) || { code=$$?; [ $$code -eq 77 ] || exit $$code; }

csi: build ## the kubelet killed while pods with claims of a CSI driver come and go; KILLS=20 is how often (needs root)
	@hack/csi.sh $(KILLS) || { code=$$?; [ $$code -eq 77 ] || exit $$code; }

clean: ## what the above made
	rm -rf bin conformance/images/bin/*/actor.gz
	$(GO) clean
