# Everything is in make.py; this forwards, so that `make test` works too.
.PHONY: help run test check lock
help run test check lock:
	@python3 make.py $@
