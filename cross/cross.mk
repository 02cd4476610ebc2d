# Targets for other architectures: ARCH is aarch64, armv7, armv7-no-neon or riscv64. See docs/boards.md.
ARCH ?= aarch64

.PHONY: cross-tools wheels image bundle conformance release

cross-tools: ## Install the cross compilers, emulators and image builders (Debian, root)
	@cross/tools.sh

wheels: ## Make dist/wheels/ARCH: all that a device installs, without compiler or network
	@cross/wheels.sh $(ARCH)

image: ## Build the container image for ARCH (MODEL=smollm2 puts the model in)
	@cross/image.sh $(ARCH)

bundle: ## Make dist/bundle/...tar: wheelhouse, model, install script, unit, checksums
	@cross/bundle.sh $(ARCH)

conformance: ## Under emulation of ARCH: the pure tests, every golden trace, one call by the real model
	@cross/conformance.sh $(ARCH)

release: ## Lay out every artefact in dist/release with checksums and an SBOM (ARCH=… lays out one)
	@cross/release.sh $(if $(filter command environment,$(firstword $(origin ARCH))),$(ARCH))
