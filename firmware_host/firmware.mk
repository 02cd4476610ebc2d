# The device's end of the serial link: for this machine and for a Cortex-M3. Included by the Makefile at the top.
# make firmware prints the sizes and fails above the limits. ASan cannot see into the emulated build; the same sources
# are tested with it here.

FIRMWARE       := firmware_host
FIRMWARE_BUILD ?= build/firmware
ARM            ?= arm-none-eabi-
CLANG          ?= clang
FUZZ_RUNS      ?= 200000

FIRMWARE_FLASH_BYTES_MAX := 12288
FIRMWARE_RAM_BYTES_MAX   := 2048

FIRMWARE_LIBRARY := $(wildcard $(FIRMWARE)/src/*.c)
FIRMWARE_HEADERS := $(wildcard $(FIRMWARE)/include/*.h $(FIRMWARE)/demo/*.h) $(FIRMWARE)/firmware.mk
FIRMWARE_BOARD   := $(FIRMWARE)/demo/thermostat.c
FIRMWARE_FLAGS   := -std=c99 -pedantic -Wall -Wextra -Werror -Wconversion -Wshadow \
                    -I$(FIRMWARE)/include -I$(FIRMWARE)/demo
FIRMWARE_CHECKED := -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all
FIRMWARE_ARM     := -mcpu=cortex-m3 -mthumb -Os -ffunction-sections -fdata-sections -fcallgraph-info=su \
                    -DEA_KEPT_SECTION='".kept"'
FIRMWARE_OBJECTS := $(patsubst $(FIRMWARE)/%.c,$(FIRMWARE_BUILD)/arm/%.o,\
                    $(FIRMWARE_LIBRARY) $(FIRMWARE_BOARD) $(FIRMWARE)/mps2_an385/start.c)
FIRMWARE_LIBRARY_OBJECTS := $(patsubst $(FIRMWARE)/%.c,$(FIRMWARE_BUILD)/arm/%.o,$(FIRMWARE_LIBRARY))

.PHONY: firmware firmware-host firmware-arm firmware-test

firmware: firmware-host firmware-arm ## Build the device's end for this machine and for a Cortex-M3; prints the sizes

firmware-host: $(FIRMWARE_BUILD)/thermostat

$(FIRMWARE_BUILD)/thermostat: $(FIRMWARE)/host/main.c $(FIRMWARE_BOARD) $(FIRMWARE_LIBRARY) $(FIRMWARE_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(FIRMWARE_FLAGS) $(FIRMWARE_CHECKED) -o $@ $(filter %.c,$^)

$(FIRMWARE_BUILD)/arm/%.o: $(FIRMWARE)/%.c $(FIRMWARE_HEADERS)
	@mkdir -p $(@D)
	@command -v $(ARM)gcc >/dev/null || \
	    { echo "$(ARM)gcc is missing: apt-get install gcc-arm-none-eabi libnewlib-arm-none-eabi"; exit 1; }
	$(ARM)gcc $(FIRMWARE_FLAGS) $(FIRMWARE_ARM) -c -o $@ $<

$(FIRMWARE_BUILD)/thermostat.elf: $(FIRMWARE_OBJECTS) $(FIRMWARE)/mps2_an385/link.ld
	$(ARM)gcc -mcpu=cortex-m3 -mthumb --specs=nano.specs -nostartfiles -Wl,--gc-sections -Wl,--fatal-warnings \
	    -T $(FIRMWARE)/mps2_an385/link.ld -Wl,-Map=$(FIRMWARE_BUILD)/thermostat.map -o $@ $(FIRMWARE_OBJECTS)

# The library's own sizes: its code and constants; the server's memory and its deepest stack, by the compiler's call
# graph. Then the whole firmware with the C library, the board's tools and its stack.
firmware-arm: $(FIRMWARE_BUILD)/thermostat.elf
	@flash=$$($(ARM)size $(FIRMWARE_LIBRARY_OBJECTS) | awk 'NR > 1 { sum += $$1 + $$2 } END { print sum }'); \
	memory=$$((0x$$($(ARM)nm -S $< | awk '$$4 == "server" { print $$2 }'))); \
	depth=$$(awk '$$2 == "EA_DEPTH_MAX" { print $$3 }' $(FIRMWARE)/include/ea_cbor.h); \
	stack=$$(awk -v DEPTH_MAX="$$depth" -f $(FIRMWARE)/stack.awk $(FIRMWARE_LIBRARY_OBJECTS:.o=.ci)); \
	echo "library:  flash $$flash of $(FIRMWARE_FLASH_BYTES_MAX) bytes, RAM $$memory + stack at most $$stack" \
	    "of $(FIRMWARE_RAM_BYTES_MAX) bytes"; \
	$(ARM)size -A $< | awk '/^\.(text|data) / { flash += $$2 } /^\.(data|bss|kept|stack) / { ram += $$2 } \
	    END { print "firmware: flash " flash " bytes, RAM " ram " bytes, its stack and the C library included" }'; \
	if [ $$flash -gt $(FIRMWARE_FLASH_BYTES_MAX) ] || [ $$((memory + stack)) -gt $(FIRMWARE_RAM_BYTES_MAX) ]; then \
	    echo "the library is too large"; exit 1; \
	fi

# Vectors with sanitizers, then a bounded run of the fuzzer, where clang and its runtime are here.
firmware-test: $(FIRMWARE_BUILD)/vectors $(FIRMWARE_BUILD)/fuzz-files ## Test the device's end with sanitizers, and fuzz it
	$(FIRMWARE_BUILD)/vectors $(FIRMWARE)/vectors.txt
	$(FIRMWARE_BUILD)/fuzz-files $(FIRMWARE)/vectors.txt
	@if ! echo 'int LLVMFuzzerTestOneInput(const char *d, long n) { return d && n < 0; }' | \
	    $(CLANG) -x c -fsanitize=fuzzer,address,undefined -o $(FIRMWARE_BUILD)/probe - 2>/dev/null; then \
	    echo "SKIPPED ALOUD: not fuzzed, $(CLANG) or its runtime is missing (apt-get install clang libclang-rt-14-dev)"; \
	else \
	    set -e; mkdir -p $(FIRMWARE_BUILD)/corpus; \
	    $(CLANG) $(FIRMWARE_FLAGS) -g -O1 -fsanitize=fuzzer,address,undefined -o $(FIRMWARE_BUILD)/fuzz \
	        $(FIRMWARE)/test/fuzz.c $(FIRMWARE_BOARD) $(FIRMWARE_LIBRARY); \
	    $(FIRMWARE_BUILD)/fuzz -runs=$(FUZZ_RUNS) -max_len=1200 -seed=1 -verbosity=0 \
	        -dict=$(FIRMWARE)/test/fuzz.dict -artifact_prefix=$(FIRMWARE_BUILD)/ $(FIRMWARE_BUILD)/corpus \
	        2> $(FIRMWARE_BUILD)/fuzz.log || { tail -40 $(FIRMWARE_BUILD)/fuzz.log; exit 1; }; \
	    echo "fuzzed $(FUZZ_RUNS) inputs"; \
	fi

$(FIRMWARE_BUILD)/vectors: $(FIRMWARE)/test/vectors.c $(FIRMWARE_BOARD) $(FIRMWARE_LIBRARY) $(FIRMWARE_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(FIRMWARE_FLAGS) $(FIRMWARE_CHECKED) -o $@ $(filter %.c,$^)

$(FIRMWARE_BUILD)/fuzz-files: $(FIRMWARE)/test/fuzz.c $(FIRMWARE_BOARD) $(FIRMWARE_LIBRARY) $(FIRMWARE_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(FIRMWARE_FLAGS) $(FIRMWARE_CHECKED) -DEA_FUZZ_FILES -o $@ $(filter %.c,$^)
