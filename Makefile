# What a developer runs. "make check" is what CI runs; .ci/run adds fuzzing and
# the simulation. Needs Go and a POSIX shell.

GO         = go
TOOL       = $(GO) tool -modfile=internal/devtools/go.mod
SCHEDULES  = 50000
SEED       = 1
LEAST      = 100
CHAOS      = 20
FUZZTIME   = 2s
FUZZBUDGET = 180

.PHONY: help check fmt-check vet staticcheck cross build test attack fmt fuzz sim mutants chaos bench nightly guest haul race self

help:
	@echo 'make check    formatting, vet, staticcheck, other systems, build, tests'
	@echo 'make test     all tests, and which requirements they hold'
	@echo 'make attack   attacks on the sandbox work where their defences are off'
	@echo 'make build    every package, without cgo'
	@echo 'make fmt      format the tree'
	@echo 'make fuzz     one fuzz target of each package, $(FUZZTIME) each, $(FUZZBUDGET) s in all'
	@echo 'make sim      $(SCHEDULES) simulated schedules from seed $(SEED)'
	@echo 'make chaos    $(CHAOS) days with real processes on which everything goes wrong'
	@echo 'make bench    every figure of speed, five times, each beside its limit'
	@echo 'make mutants  every mutant must be caught by the simulation'
	@echo 'make guest    control groups of version 2, in a virtual machine'
	@echo 'make haul     50,000 files and a GiB over a road that is cut'
	@echo 'make self     Forgeyard builds itself, as .forgeyard.yml says'
	@echo 'make nightly  what takes too long for each commit'

check: fmt-check vet staticcheck cross build test attack

fmt-check:
	@files=$$($(TOOL) gofumpt -l .) || exit 1; \
	if [ -n "$$files" ]; then echo "$$files"; echo 'not formatted: run make fmt'; exit 1; fi

vet:
	$(GO) vet ./...

staticcheck:
	$(TOOL) staticcheck ./...

# What is written for other systems is checked on this one.
cross:
	GOOS=windows $(GO) vet ./...
	GOOS=darwin $(GO) vet ./...

build:
	CGO_ENABLED=0 $(GO) build ./...

# acceptance runs the tests itself, so that no pipe hides the status of go test. The ten repositories take eight minutes on a machine
# that is busy; Go would give them ten.
test:
	@$(GO) build -o bin/acceptance ./tools/acceptance
	bin/acceptance -tsv docs/acceptance.tsv -spec ../shared/spec/acceptance.tsv -exec $(GO) test -timeout 25m -json ./...

# Every attack on the sandbox again, without what stops it: in this build, which no agent starts from, defences can be
# switched off.
attack:
	$(GO) vet -tags forgeyard_unsafe ./internal/sandbox/...
	$(GO) test -tags forgeyard_unsafe ./internal/sandbox/attack

fmt:
	$(TOOL) gofumpt -w .

fuzz:
	.ci/fuzz one $(FUZZTIME) $(FUZZBUDGET)

# Every interesting state must have been reached often enough for the run to mean something.
sim:
	$(GO) run ./tools/sim -schedules $(SCHEDULES) -seed $(SEED) -least $(LEAST)

mutants:
	$(GO) run ./tools/sim -mutants -schedules $(SCHEDULES) -seed $(SEED)

# The fleet is built anew, in a folder of its own, and so are the folders of the runs.
chaos:
	$(GO) run ./tools/chaos -runs $(CHAOS) -seed $(SEED)

bench:
	$(GO) run ./tools/bench all

# The last figures stand in docs/testing.md.
nightly:
	$(MAKE) sim SCHEDULES=1000000 LEAST=2000
	$(GO) run ./tools/sim -explore 2 -most 400000
	$(MAKE) mutants
	$(MAKE) chaos CHAOS=200
	.ci/fuzz all 60s 28800
	$(MAKE) guest
	$(MAKE) haul
	$(MAKE) race

# Our own pipeline, in sandboxes, by the command as it stands.
self:
	$(GO) run ./cmd/forgeyard run

# Needs qemu-system-x86_64 and a kernel in /boot; says what is missing, and is skipped.
guest:
	FORGEYARD_NIGHTLY=1 $(GO) test -count=1 -v -run VirtualMachine ./internal/sandbox/cgroup

# Takes 10 GiB of memory where there are as many, else of the disk.
haul:
	FORGEYARD_NIGHTLY=1 $(GO) test -count=1 -v -timeout 30m -run LargeJobsFiles ./e2e

# The race detector needs cgo and a C compiler.
race:
	CGO_ENABLED=1 $(GO) test -race ./...
