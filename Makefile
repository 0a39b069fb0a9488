# SPDX-License-Identifier: GPL-2.0-only
#
# For people. What the module is made of stands in Kbuild, which the kernel's
# own build system reads.

# make and the kernel's build would take such a path for two.
ifneq ($(words $(subst :, ,$(CURDIR))),1)
$(error "$(CURDIR)": a checkout's path must have no space and no colon)
endif

KDIR ?= /lib/modules/$(shell uname -r)/build
KERNEL ?= $(shell selftests/vm/kernels default)

all: modules

help:
	@echo 'make                 build timewheel.ko for the running kernel (KDIR=...)'
	@echo 'make lib twctl       build libtimewheel, the tool: .build/lib, .build/twctl'
	@echo 'make install         install all of it (DESTDIR=, prefix=; as root)'
	@echo 'make deb             Debian packages: .build/deb'
	@echo 'make sign KEY= CERT= sign timewheel.ko for Secure Boot'
	@echo 'make clean           remove everything built'
	@echo
	@echo 'These need no kernel of yours: they fetch packaged Debian kernels and run'
	@echo 'them in QEMU. KERNEL= chooses one: $(call kernels,packaged)'
	@echo '(the first unless told), or, built on their first use: $(call kernels,built),'
	@echo 'or, emulated and only for make guest: $(call kernels,emulated).'
	@echo 'make demo            build and run the demonstration in two guests'
	@echo 'make vm              a shell in a guest, with the module and the tests'
	@echo 'make guest TESTS="promises abi" OPTIONS="--icount -c 1"'
	@echo '                     run some tests in a guest'
	@echo 'make check           run everything; LANES="model core" only some of it'
	@echo 'make matrix          the tests on each kernel with 1 to 8 CPUs, 32-bit callers and'
	@echo '                     checked memory, on arm64, s390x and ppc64el: two hours on'
	@echo '                     two quiet CPUs;'
	@echo '                     LANES="$(lastword $(call kernels,packaged))+8cpus" only some of it'
	@echo 'make bench           beside other ways to keep timeouts: the core natively, and'
	@echo '                     instructions in a guest, also of Python, Go and Node;'
	@echo '                     userspace/bench/Makefile has more'
	@echo 'make check-debug     the tests under KASAN, lockdep, KCSAN and their like, and that'
	@echo '                     these find faults, and in full length what make check'
	@echo '                     shortens: long, before a release'
	@echo 'make torture T=30m   everything at once, killed, stopped, short of memory, with its'
	@echo '                     CPU unplugged and its clock set, for that long'
	@echo 'make torture JOBS=3h twjobd killed, upgraded, reset and its power cut, for that long'
	@echo 'make check-core      the tests of the core in user space: no guest'
	@echo 'make check-native    the library and kselftests on wheels of the process: no guest'
	@echo 'make mutants         that small faults are found: two hours; FAULTS="kmod/list.c" only some'
	@echo 'make fuzz T=8h       random use, guided by what it runs, for that long: half of it of'
	@echo '                     the device in a debug kernel, half of the core in user space'

modules: | have-module
	$(MAKE) -C $(KDIR) M=$(CURDIR) $@

install: | have-install modules
	$(MAKE) -C $(KDIR) M=$(CURDIR) INSTALL_MOD_PATH=$(DESTDIR) \
		CONFIG_MODULE_SIG_ALL= modules_install
	$(MAKE) -C userspace/packaging install

deb:
	selftests/vm/deps deb
	$(MAKE) -C userspace/packaging deb

sign:
	@userspace/packaging/sign "$(KDIR)" timewheel.ko "$(KEY)" "$(CERT)"

lib twctl: %: | have-%
	$(MAKE) -C userspace/$@ OUTPUT=$(CURDIR)/.build/$@

clean:
	[ ! -d $(KDIR) ] || $(MAKE) -C $(KDIR) M=$(CURDIR) clean
	rm -rf .build

# What is missing to build for this system.
have-%:
	@CC="$(CC)" selftests/vm/deps $* $(KDIR)

# What cannot be is refused before anything is installed or built.
kernels = $(shell selftests/vm/kernels $(1))
tests := $(basename $(notdir $(wildcard selftests/*.c)))

valid-kernel:
	@selftests/vm/kernels -p '$(KERNEL)' packaged built >/dev/null

valid-guest:
	@selftests/vm/kernels -p '$(KERNEL)' >/dev/null
	$(if $(TESTS),,$(error TESTS names no test; there are: $(tests)))
	$(if $(filter-out $(tests),$(TESTS)),$(error \
		TESTS: no $(filter-out $(tests),$(TESTS)); there are: $(tests)))

valid-time:
	@echo '$(T)' | grep -qxE '[1-9][0-9]{0,5}[smh]?' && [ $(seconds) -ge 10 ] || { \
		echo 'T=$(T): a time is, for instance, 90s, 30m or 8h, and 10s at least' >&2; \
		exit 2; }

static = $(if $(filter $(call kernels,emulated),$(KERNEL)),-static)
selftests = $(CURDIR)/.build/selftests$(if $(static),-$(KERNEL))

build-selftests:
	selftests/vm/deps $(if $(static),matrix,check)
	selftests/vm/cross $(KERNEL) $(MAKE) -C selftests OUTPUT=$(selftests) \
		USERCFLAGS=$(static)

guest: valid-guest build-selftests
	selftests/vm/run -k $(KERNEL) $(OPTIONS) $(addprefix $(selftests)/,$(TESTS))

vm: valid-kernel build-selftests twctl
	selftests/vm/run -k $(KERNEL) $(OPTIONS) --shell -f .build/twctl/twctl \
		$(addprefix -f $(selftests)/,$(tests))

build-demo:
	selftests/vm/deps demo
	$(MAKE) -C userspace/demo OUTPUT=$(CURDIR)/.build/demo

demo: valid-kernel build-demo
	$(MAKE) -C userspace/demo run OUTPUT=$(CURDIR)/.build/demo \
		VM_OPTIONS="-k $(KERNEL) $(OPTIONS)"

check: valid-kernel
	selftests/check

matrix:
	selftests/check matrix

check-debug:
	selftests/check debug

# With JOBS, which is a time too, that of twjobd instead.
ifdef JOBS
override T := $(JOBS)
endif

torture: valid-kernel valid-time
	selftests/vm/deps check
ifdef JOBS
	$(MAKE) -s -C userspace/daemons torture-jobs SECONDS=$(seconds) KERNEL=$(KERNEL)
else
	$(MAKE) -s -C selftests/torture check T=$(T) KERNEL=$(KERNEL) OPTIONS="$(OPTIONS)"
endif

# One after the other, also by "make -j".
bench: valid-kernel
	selftests/vm/deps bench
	$(MAKE) -C userspace/bench native
	$(MAKE) -C userspace/bench guest
	$(MAKE) -C userspace/bench languages
	$(MAKE) -C userspace/bench goals

check-native:
	$(MAKE) -C userspace/lib check-native

check-core:
	selftests/vm/deps core
	$(MAKE) -C selftests/core check

mutants:
	selftests/vm/deps check
	selftests/mutants/run $(CURDIR)/.build/mutants $(FAULTS)

T ?= 10m
seconds = $$(($(patsubst %h,%*3600,$(patsubst %m,%*60,$(T:%s=%)))))

fuzz: valid-time
	selftests/vm/deps fuzz
	selftests/fuzz/run $$(($(seconds) / 2))
	$(MAKE) -C selftests/core fuzz T=$$(($(seconds) / 2))s

.DEFAULT:
	@echo 'there is no target $@: "make help" lists all' >&2; exit 2

.PHONY: all help modules lib twctl install deb sign clean build-selftests \
	build-demo guest vm demo check matrix check-debug torture fuzz bench \
	check-core check-native mutants valid-kernel valid-guest valid-time
# Here things are done in this order: "make -j" is for the folders below.
.NOTPARALLEL:
