# Everything here needs Go alone, but for the race detector and the GPU, which need a C compiler. golangci-lint runs
# where it is installed.

GO ?= go

empty :=
space := $(empty) $(empty)

# The packages whose code runs on several goroutines: these are tested a second time under the race detector, but for what
# takes long. Left out are tests that compute on one goroutine alone, or have one request at a time (Cost); models, and
# instruction sets, whose steps the conformance has on the same threads; those of gpu/null of which TestHybrid has a case
# and most of its conformance; guesses on a card without a draft model, since those with one are there; a perplexity whose
# way through the program is that of TestPerplexityAgainst; and gpu/vulkan's and gpu/cuda's own: there lavapipe's threads
# have crashed, at which the race detector does not look, nor at what the fake driver's kernels do; gpu/exec, whose
# goroutines those are, is tested on gpu/null.
RACE := $(patsubst %,./%/...,$(wildcard actors server storage gpu/*/)) ./cpu ./cpu/vec ./cmd/sluice/...
RACE := $(filter-out ./gpu/cuda/... ./gpu/vulkan/...,$(subst //,/,$(RACE))) ./gpu/vulkan/vk
RACE_SKIP = ^Test(Compositions|RandomOrders|DroppedBarriers|AnyDivision|DealtBits|ForcedForms|PerplexityOfBytes|Cost|$\
	Specimens|TwinStates|OracleOverStretches|UnseenOnCard)$$|$\
	^TestConformance$$/^all$$/^(Ops|Attention|Types|Models|Heads|Orders|Slots|Seals|Sealed|Mixes|Windows|Errors)$$

# The tests that -short leaves out, and the folders they are in. internal/lint sees to it that only tests ask.
ASKING := $(shell grep -rl --include='*_test.go' 'testing[.]Short()' .)
LONG = $(sort $(dir $(ASKING)))
LONG_TESTS = $(shell awk -F '[^A-Za-z0-9_]+' '/^func / { name = $$2 } /testing[.]Short/ { print name }' $(ASKING))

# What ci leaves to nightly of long tests, on cards that a processor plays: most checks of each property, calls that fail
# but for every fifth, most texts that trained models go on with, models whose operations others have, too, and types of
# matrices where others go the same way.
EMULATED = ./gpu/null ./gpu/vulkan ./gpu/cuda
USUAL = llama llama3rope mistral qwen2 qwen3 olmo2 smollm3 gemma2 gemma4 granite qwen2moe mixtral granitemoe olmoe ernie45 \
	seedoss hunyuan glm4moe deepseek2 qwen35 qwen35moe phi3.nowindow glm4 exaone4 internlm2 stablelm gptneox gemma \
	command-r-plus hunyuan-moe falcon-h1-bare
LONG_SKIP = ^TestScarce$$|^TestGolden$$/^(go-func|go-read|english-tech|english-story|chat-json)$$|$\
	^Test(Fixtures|PromptsFixtures|Specimens)$$/^($(subst $(space),|,$(strip $(USUAL))))$$|$\
	^TestConformance$$/^(Models|Orders|Uploads)$$/(^|_)(F32|Q5_1)|$\
	^TestConformance$$/^Slots$$/^(llama|gemma|starcoder|space|shared|bare|mixes|networks|experts|encoder|steep)$$|$\
	^TestUnderWine$$/^(starts|streams|keeps|talks|serves)$$

# The folders whose tests keep golden files: those that define the flag -update.
GOLDEN = $(sort $(dir $(shell grep -rl --include='*_test.go' '"update"' .)))

# CI trusts no result of an earlier run.
FRESH = $(if $(CI),-count=1)

# How long `make fuzz` spends on each fuzz target.
FUZZTIME ?= 1m

# What `make bench` measures, how often, and where bench-compare finds what it was before.
BENCH ?= .
BENCHCOUNT ?= 6
BASELINE ?= bench.baseline
BENCHSTAT ?= $(GO) run golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da
BENCHED = $(GO) test -timeout 0 -run '^$$' -bench '$(BENCH)' -count $(BENCHCOUNT) ./cpu/...

# What `make dist` makes: NAME is sluice-OS-ARCH, with -static for the CPU alone and any libc, or none.
DIST = dist
DISTS = sluice-linux-amd64 sluice-linux-amd64-static sluice-linux-arm64-static

.PHONY: dist release build check ci nightly fmt vet lint systems all-systems wine portable test rest long race bench bench-baseline bench-compare gpu-bench gpu-check gpu-suite fuzz gen golden

build: ## ./sluice
	$(GO) build -trimpath -o sluice ./cmd/sluice

dist: $(DISTS:%=$(DIST)/%) ## programs to install elsewhere, with checksums; two are static, one has Vulkan and needs glibc
	cd $(DIST) && sha256sum $(DISTS) > SHA256SUMS

.PHONY: $(DISTS:%=$(DIST)/%)
$(DIST)/sluice-linux-amd64: export CGO_ENABLED = 1
$(DISTS:%=$(DIST)/%):
	@mkdir -p $(DIST)
	$(if $(findstring static,$@),CGO_ENABLED=0) GOOS=linux GOARCH=$(word 3,$(subst -, ,$(notdir $@))) \
		$(GO) build -trimpath -ldflags '-s -w' -o $@ ./cmd/sluice

# All systems' programs for the CPU alone, with what is printed by the one for this machine, packed by internal/release.
# Files are of the time of the commit: equal commits and versions of Go give equal bytes.
RELEASE = $(DIST)/release
RELEASED = linux-amd64 linux-arm64 darwin-arm64 darwin-amd64 windows-amd64 windows-arm64
RELEASE_BUILD = CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w'
release: ## archives, packages, images, bills of materials, manifests and checksums of VERSION=1.2.3, for all systems
	@test -n "$(VERSION)" || { echo "want a version: make release VERSION=1.2.3"; exit 1; }
	rm -rf $(RELEASE) && mkdir -p $(RELEASE)/all
	set -e; for system in $(RELEASED); do \
		GOOS=$${system%-*} GOARCH=$${system#*-} $(RELEASE_BUILD) -o $(RELEASE)/$$system/ ./cmd/sluice; done
	$(RELEASE_BUILD) -o $(RELEASE)/here ./cmd/sluice && $(RELEASE)/here man > $(RELEASE)/all/sluice.1
	set -e; for shell in bash zsh fish; do $(RELEASE)/here completion $$shell > $(RELEASE)/all/sluice.$$shell; done
	cp LICENSE README.md CHANGELOG.md $(RELEASE)/all/
	$(GO) run ./internal/release/pack -dir $(RELEASE) -version $(VERSION) -time $$(git log -1 --format=%ct)

# Left out are the tests that -short skips, the parts that it leaves out of others, and rest: ci has them.
check: fmt vet portable test ## what to run before a commit: at most four minutes

ci: build lint systems rest long race gpu-suite ## what takes longer; together with check, all that a change must pass

# What .ci/budget has no minutes for. Of each, ci runs a short form.
NIGHTLY = $(GO) test -count=1 -vet=off -timeout 2h
.PHONY: chart
chart: ## the chart for Kubernetes, by Helm's own engine, which takes minutes to build
	cd deploy/helm/check && $(GO) vet . && $(GO) test -count=1 . # the chart lies outside the module: its changes are not seen

nightly: ci fuzz all-systems wine chart ## hours: long floods, long chaos, a GPU that lacks all that it can lack, every fuzz target, all clients
	SLUICE_SOAK=5m $(NIGHTLY) -run '^Test(Soak|HostileCrowd)$$' ./server
	SLUICE_SOAK=30m $(NIGHTLY) -v -run '^TestSoakOfServe$$' ./cmd/sluice
	SLUICE_KILLS=10m $(NIGHTLY) -v -run '^TestKilledEveryFewSeconds$$' ./cmd/sluice
	SLUICE_MEMBER_CHAOS=10m $(NIGHTLY) -v -run '^TestMemberChaos$$' ./cmd/sluice
	SLUICE_BACK=embedded:12134 $(NIGHTLY) -v -run '^TestBackAsSoonAsRead$$' ./cmd/sluice
	SLUICE_REPLAYED=10000 $(NIGHTLY) -v -run '^TestReplayOfMixedRequests$$' ./cmd/sluice
	SLUICE_CHAOS_TIME=5m $(NIGHTLY) -run Chaos ./actors
	$(NIGHTLY) -run '^($(subst $(space),|,$(sort $(LONG_TESTS))))$$' $(EMULATED) -rapid.checks 100
	SLUICE_VULKAN_WITHOUT=all $(NIGHTLY) -run '^TestConformance$$' ./gpu/vulkan
	$(NIGHTLY) -run '^TestUnderWine$$' ./internal/winetest
	if command -v npm >/dev/null; then server/clients.sh; else echo 'npm is not here: the client table is left out'; fi

fmt:
	@out=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); \
	if [ -n "$$out" ]; then echo "gofmt would change these files, run gofmt -w on them:"; echo "$$out"; exit 1; fi

vet:
	$(GO) vet ./...

lint:
	@if command -v golangci-lint >/dev/null; then golangci-lint run; \
	else echo "golangci-lint is not on PATH: its part is left out"; fi

# CI vets packages that have files for some systems alone, with their tests; it builds the program for Windows in
# TestUnderWine, and everything for arm64 by make portable. The rest of the table is all-systems'.
SYSTEMS = windows/amd64 windows/arm64 darwin/arm64 darwin/amd64 linux/arm64
systems: SYSTEMS = windows/amd64 darwin/arm64
FOR_SYSTEMS = $(sort $(dir $(shell git ls-files -co --exclude-standard '*_linux.go' '*_windows.go' '*_darwin.go')))
each_system = set -e; for system in $(SYSTEMS); do \
	echo "$(1) for $$system"; CGO_ENABLED=0 GOOS=$${system%/*} GOARCH=$${system\#*/} $(1); done
systems: ## vets what differs between systems, for Windows and macOS
	@$(call each_system,$(GO) vet $(addprefix ./,$(FOR_SYSTEMS)))

all-systems: ## every package and its tests, for all systems
	@$(call each_system,$(GO) vet ./...)
	@$(call each_system,$(GO) build ./...)

# Packages that compute and read files, whose tests run for Windows as well. storage/uring's leave folders whose names this
# Wine cannot remove beside what they log, and internal/winetest cannot tell that from failing.
UNDER_WINE = ./internal/system ./internal/safefile ./internal/ir/... ./internal/quant ./storage/gguf ./storage/safetensors \
	./stages/batch ./stages/chat ./stages/kv ./stages/place ./stages/token ./cpu/kernels ./cpu/vec
wine: ## tests for Windows, by Wine
	$(GO) build -o $(DIST)/wine ./internal/winetest/wine
	CGO_ENABLED=0 GOOS=windows GOARCH=amd64 $(GO) test -short -count=1 -vet=off -timeout 1h -exec $(abspath $(DIST)/wine) \
		$(UNDER_WINE)

# Everything, here and on a machine without our assembly. internal/lint builds and starts the program without cgo.
portable:
	$(GO) build ./...
	GOARCH=arm64 CGO_ENABLED=0 $(GO) build ./...

# Unit tests, laws, goldens, the seeds of every fuzz target, and internal/lint, but for rest. vet has just been. The limit
# is for what hangs: where a machine is busy with other things, tests take many times as long. With MISSED=FILE these are
# only the tests that lacked something where they ran with SLUICE_MISSED=FILE (internal/testref).
SHORT = $(GO) test $(FRESH) -short -vet=off -timeout 45m
test:
ifdef MISSED
	$(SHORT) $(MISSED_TESTS)
else
	$(SHORT) -skip '$(SLOW)' $$($(GO) list ./... | grep -vE '/($(call any,$(DEVICES)))$$')
	$(SHORT) -run '$(SLICE)' $(SLICED:%=./%)
endif

# What takes a second or more of the tests that -short keeps, and devices' own tests.
rest:
	$(SHORT) -run '$(SLOW)' $(sort $(dir $(shell grep -rlE --include='*_test.go' 'func Test($(call any,$(SLOW_NAMES)))\>' .)))
	$(SHORT) $(DEVICES:%=./%)
any = $(subst $(space),|,$(strip $1))
DEVICES = cpu/ref gpu/cuda gpu/null gpu/vulkan internal/backend/compose internal/backend/remote
SLICED = cpu/ref gpu/vulkan internal/backend/compose internal/backend/remote
SLICE = ^TestConformance$$/^(Ops|Attention|Blocks|Slots|Errors)$$
SLOW = ^Test($(call any,$(SLOW_NAMES)))$$
SLOW_NAMES = UnseenBound SurviveStates SurviveVRAM ForcedForms SurviveHangAnywhere SurviveOthers UnseenOnCard \
	MasksSurvive TwoProcessesOnGPU SurviveStreaming SurviveDrives Constrained DraftSharesTheHouse StallsName \
	ChunkFreeStates ThoughtsEnd TwoEnginesOnGPU WakeUpIsNotLost StreamedAnswers RecomputeStates ConstrainedSurvive \
	SurviveHang ForcedCalls ProposalsOnCard SurviveChaos SurviveChaosOfMoves SurviveChaosOfFiles \
	SurviveChaosOfSessions SurviveChaosOfDrafts PlanLeavesOthersTheirMemory DrivesFailClearly TricklingClient \
	SurviveMember UnreadAnswer Shares ReadingIsTold ReadingKeepsClientsPatient ManyClients CutCalls CrowdOfLargeBodies Cost CUDAFlag \
	CPUExperts Create KVProfile KVProfileRefuses QuantizedPerplexity Record PullKilled NothingIsReplacedUnasked Bench \
	PlanOfVulkan PerplexityOfBytes OracleOverStretches ChunkFree ReferencePreTokenizers TwinStrips BuildsWithoutCgo
missed = $(shell cut -d' ' -f$1 $(MISSED) | sort -u)
MISSED_TESTS = -run '^($(subst $(space),|,$(call missed,2)))$$' $(call missed,1)

# What test left out, and nothing else.
long:
	$(if $(ASKING),$(GO) test -count=1 -vet=off -timeout 45m -run '^($(subst $(space),|,$(sort $(LONG_TESTS))))$$' \
		-skip '$(LONG_SKIP)' $(LONG))

race:
	@if CGO_ENABLED=1 $(GO) env CC >/dev/null && command -v $$($(GO) env CC) >/dev/null; then \
		echo $(GO) test -race -short $(RACE); \
		CGO_ENABLED=1 $(GO) test -race -short -count=1 -vet=off -timeout 45m -skip '$(RACE_SKIP)' $(RACE); \
	elif [ "$$CI" = true ]; then echo "no C compiler for the race detector"; exit 1; \
	else echo "no C compiler: the race detector's part is left out"; fi

bench: build ## kernels first, then the whole engine on the embedded model
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem ./...
	./sluice bench

bench-baseline: ## save what the kernels do now
	$(BENCHED) | tee $(BASELINE)

bench-compare: ## measure again, against bench-baseline's result
	@test -f $(BASELINE) || { echo "$(BASELINE) is missing: make bench-baseline, on the commit to compare with"; exit 1; }
	$(BENCHED) | tee bench.now
	$(BENCHSTAT) $(BASELINE) bench.now

gpu-bench: ## ./vulkan.test: tests and benchmarks of the GPU's kernels, to carry to a machine with a card (docs/gpu.md)
	CGO_ENABLED=1 $(GO) test -c -o vulkan.test ./gpu/vulkan

gpu-check: gpu-bench ## ./*.test: programs for gpu/check.sh, which tests a machine with a card
	$(GO) test -c -ldflags '-s -w' -o actors.test ./actors
	$(GO) test -c -ldflags '-s -w' -o server.test ./server

# Of the suites of engines and servers what takes a processor that plays a card (lavapipe) a minute or two; gpu/check.sh
# has all of them, for a card.
ON_GPU = SLUICE_TEST_DEVICE=vulkan SLUICE_VULKAN_BARE=1 $(GO) test -short -count=1 -vet=off -timeout 15m
gpu-suite: ## engines and servers that compute on a Vulkan device
	@case " $(SLUICE_WITHOUT) " in *" vulkan "*) echo "no Vulkan device: its part is left out"; exit 0;; esac; set -x; \
	$(ON_GPU) -run '^Test($(ENGINES_ON_GPU))$$' ./actors && $(ON_GPU) -run '^Test($(SERVERS_ON_GPU))$$' ./server
ENGINES_ON_GPU = Generate|Idle|Spans|NoAlloc|FileChanges|SurviveChaos|Constrained|ForcedCalls|OneBOS|RequestFaults
SERVERS_ON_GPU = Limits|CancelBefore|RefusalsOfMessages|SharedPaths|DebugActors|HTTP10|Framing|UnreadBody

fuzz: ## every fuzz target for FUZZTIME
	@for dir in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -r dirname | sort -u); do \
		for f in $$($(GO) test -list '^Fuzz' $$dir | grep '^Fuzz'); do \
			echo "== $$dir $$f"; $(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) $$dir || exit 1; \
		done; \
	done

gen: ## run every generator
	$(GO) generate ./...

golden: ## rewrite the golden files; read the diff before committing it
	$(if $(strip $(GOLDEN)),$(GO) test $(GOLDEN) -update,@echo "no golden files")
