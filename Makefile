# Everything is in make.py; this forwards, so that `make test` works too.
.PHONY: help run test check mutants pictures lock
help run test check mutants pictures lock:
	@python3 make.py $@
