module github.com/swdt-dev/swdt/lab/specs

go 1.26.0

require github.com/onsi/ginkgo/v2 v2.28.1
