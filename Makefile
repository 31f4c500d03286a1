# Everything installs what it lacks and says so. See CONTRIBUTING.md.
.DEFAULT_GOAL := help
.PHONY: help run build setup test check generate bench pictures clean

help: ## Show this list.
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: build ## Build and run on this machine, with engines, demo data and a playground. ARGS="--listen 127.0.0.1:9090"
	@exec bin/tidemark dev $(ARGS)

build: ## Build bin/tidemark, with the playground in it.
	@scripts/setup run
	@[ -e bin/tidemark ] || echo "Building bin/tidemark. The first time takes a minute or two."
	@go build -o bin/tidemark .

setup: ## Install what the tests need.
	@scripts/setup test

test: ## Run all checks and all tests, with the race detector. FLAGS="-run Name" PACKAGES=./internal/...
	@scripts/setup test
	@status=0; scripts/check || status=1; scripts/test $(FLAGS) $(or $(PACKAGES),./...) || status=1; exit $$status

check: ## Check formatting, generated code, modules and lint.
	@scripts/check

generate: ## Generate code anew: gqlgen from schema.graphqls, sqlc from migrations/ and queries/.
	@scripts/setup run
	@go tool gqlgen generate
	@scripts/sqlc generate

bench: ## Run the benchmarks. ARGS goes to them.
	@scripts/setup run
	@go run ./bench $(ARGS)

pictures: ## Take the pictures of docs/ anew, from the running product.
	@scripts/pictures

clean: ## Remove what was built, installed or generated here, except for what is committed.
	@rm -rf bin .cache playground/assets-src/node_modules web/node_modules web/dist/built graph/audit/node_modules e2e/clients/node_modules
	@find playground/assets -type f ! -name README.md ! -name .gitignore -delete
