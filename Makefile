# Weir. “make” alone lists what there is to make.

SHELL       := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
COMMIT  ?= $(shell git rev-parse --verify -q HEAD 2>/dev/null)
# The linker is told the commit, so Go need not find it out: its own way fails
# in a checkout that belongs to another user. Programs hold no paths of the machine
# that built them; checks and tests compile in the same way, and so share what is
# compiled already.
export GOFLAGS += -buildvcs=false -trimpath
# Go's default, without a warning for each deprecated function that go-nvml
# binds. Everything that make starts compiles with the same, so that it shares
# one cache.
export CGO_CFLAGS ?= -O2 -g -Wno-deprecated-declarations

ARGS      ?=
# The packages whose tests take longest start first.
PKG       ?= ./e2e ./workspaces/kube/clustertest ./...
BENCH     ?= .
TESTFLAGS ?=
TIMEOUT   ?= 60m
SOURCES   := $(wildcard cmd deploy e2e handlers migrations models policies pool storage tools web workspaces)

.PHONY: help run jupyterlab code-server build test test-load first-minutes ledger kernels soak chaos audit scale lint fresh generate reproducible sbom manifests bench bench-peers cluster cluster-down clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

run: ## install what is missing, build, and serve on 127.0.0.1:8080 (ARGS="--listen …")
	@tools/setup run
	@$(MAKE) --no-print-directory build
	@gpus=; if [[ ! -e /dev/nvidia0 ]]; then \
		gpus="--simulate-gpus h100:8"; \
		echo "There is no NVIDIA GPU here: the pool gets eight simulated H100."; \
	fi; \
	exec bin/weir serve --data-dir ./data $$gpus $(ARGS)

jupyterlab: ## install JupyterLab, with which workspaces start instead of Jupyter Notebook
	@tools/jupyterlab

code-server: ## install code-server, with which workspaces offer VS Code
	@tools/code-server

build: ## build bin/weir
	@mkdir -p bin
	@go list -deps ./cmd/weir >/dev/null 2>&1 || true # fetches modules without a line for each; go build reports what failed
	CGO_ENABLED=1 go build -ldflags "-s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)" -o bin/weir ./cmd/weir

test: ## run all tests, the end-to-end ones too (PKG=./pool/… TESTFLAGS=-race)
	@tools/setup test
	@$(MAKE) --no-print-directory build
	@PKG="$(PKG)" TIMEOUT="$(TIMEOUT)" TESTFLAGS="$(TESTFLAGS)" LOAD="$(LOAD)" tools/test

test-load: LOAD ?= 4
test-load: test ## the same beside busy loops (LOAD=4), to find tests that depend on time

lint: ## check format, vet, staticcheck, generated files and the project's own rules
	@tools/setup lint
	@unformatted=$$(gofmt -l $(SOURCES)); \
	if [[ -n $$unformatted ]]; then echo "gofmt would change:"; echo "$$unformatted"; exit 1; fi
	go vet -tags cluster ./...
	go tool staticcheck -tags cluster ./...
	go test -count=1 ./tools/rules
	@if [[ -n "$${GOVULNDB:-}" ]]; then \
		go tool -modfile=tools/supplychain/go.mod govulncheck -db "$$GOVULNDB" ./...; \
	else echo "Known vulnerabilities are not looked for: GOVULNDB does not name a database, such as https://vuln.go.dev."; fi
	@$(MAKE) --no-print-directory fresh

# Generates again and fails when that changes anything.
fresh:
	@sums() { find web -name '*_templ.go' | sort | xargs -r sha256sum; sha256sum docs/openapi.json docs/reference/{settings,cli}.md deploy/manifests/weir.yaml; }; \
	before=$$(sums); \
	$(MAKE) --no-print-directory generate >/dev/null; \
	if ! diff <(echo "$$before") <(sums); then echo "generated files were stale; commit what “make generate” made"; exit 1; fi

generate: manifests ## generate the pages' Go code, docs/openapi.json, docs/reference and the manifests
	go tool templ generate -path web
	@$(MAKE) --no-print-directory build
	bin/weir openapi >bin/openapi.json
	@mkdir -p docs && mv bin/openapi.json docs/openapi.json
	for page in settings cli; do bin/weir reference $$page >bin/$$page.md; mv bin/$$page.md docs/reference/$$page.md; done

reproducible: build ## build once more, elsewhere, and fail unless bin/weir is the same to the byte
	@tools/reproducible "$(VERSION)" "$(COMMIT)"

sbom: build ## list what bin/weir is made of in bin/weir.cdx.json, as CycloneDX
	go tool -modfile=tools/supplychain/go.mod cyclonedx-gomod bin -json -version "$(VERSION)" -output bin/weir.cdx.json bin/weir

manifests: ## render the Helm chart into deploy/manifests
	@mkdir -p bin
	go tool -modfile=tools/helm/go.mod helm template weir deploy/chart --namespace weir --kube-version 1.34.0 --values deploy/manifests-values.yaml >bin/manifests.yaml
	@mv bin/manifests.yaml deploy/manifests/weir.yaml

first-minutes: ## in a browser from the setup link of a running server to a cell's result (LINK="http://…")
	@tools/setup test
	WEIR_SETUP_LINK="$(LINK)" go test -count=1 -v -run '^TestFirstMinutesInBrowser$$' ./e2e

ledger: ## 64 writers on the quota ledger of both databases, 100,000 moves, each history checked (WEIR_LEDGER=MOVES)
	WEIR_LEDGER=$${WEIR_LEDGER:-100000} go test -count=1 -timeout $(TIMEOUT) -v -run '^TestLedgerIsLinearizable$$' ./pool/projects

kernels: ## allocate the barriers of 100,000 random kernels, each run in all interleavings (KERNELS=N)
	go test -count=1 -timeout $(TIMEOUT) -v -run '^TestRandomKernels$$' ./workspaces/barrier -kernels $(or $(KERNELS),100000)

soak: ## two servers under load for three minutes, one killed every 20 s; needs root
	@tools/setup test
	@go run ./tools/cluster/cmd prepare
	WEIR_SOAK=3m go test -tags cluster -count=1 -timeout $(TIMEOUT) -v -run '^TestSoak$$' ./e2e

chaos: ## a server for ten minutes with a full disk, without descriptors, with a locked database, jumping clocks and kill -9; needs root
	@tools/setup test
	WEIR_CHAOS=10m go test -count=1 -timeout $(TIMEOUT) -v -run '^TestChaos$$' ./e2e

audit: ## each way to take a right away, on one server and on two that hang or are killed: what is answered after it; needs root
	@tools/setup test
	@go run ./tools/cluster/cmd prepare
	WEIR_AUDIT=all go test -tags cluster -count=1 -timeout $(TIMEOUT) -v -run '^TestAudit' ./e2e

scale: ## 5,000 workspaces on 1,000 simulated nodes (WEIR_SCALE=NODESxWORKSPACES)
	@tools/setup test
	@go run ./tools/cluster/cmd prepare
	WEIR_SCALE=$${WEIR_SCALE:-1000x5000} go test -tags cluster -count=1 -timeout 60m -v -run '^TestScale$$' ./e2e

bench: ## run the benchmarks (PKG=./pool/… BENCH=Place)
	go test -run '^$$' -bench '$(BENCH)' -benchmem $(PKG)

bench-peers: ## measure beside JupyterHub, its proxy, nginx and Caddy (ARGS="-rounds 3 -json FILE")
	@tools/setup peers
	@$(MAKE) --no-print-directory build
	@go build -o bin/peers ./tools/peers
	@exec bin/peers -weir bin/weir $(ARGS)

cluster: ## bring up a Kubernetes on this machine (ARGS="-simulated 8"); root adds a node that runs pods
	@tools/setup cluster
	@go run ./tools/cluster/cmd $(ARGS) up

cluster-down: ## remove it, and what killed tests have left of theirs
	@go run ./tools/cluster/cmd $(ARGS) down

clean: ## remove what was built; data/ stays
	rm -rf bin
	go clean -testcache
