// Package cases chooses which cases of a large enumeration a test runs. With SWDT_EVERY_POINT=1, as in
// `make nightly`, a test runs all of them. Otherwise SWDT_SEED chooses: a number that `make test` draws for each
// run, and 1 if it is not set. A test prints the seed, so that a failure can be repeated; what a seed has
// found becomes a case of its own.
package cases

import (
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
)

// All reports whether a test is to run all of its cases.
func All() bool { return os.Getenv("SWDT_EVERY_POINT") != "" }

// Of returns n of the cases, in their order, or all of them if there are not more, or if all are wanted.
func Of[T any](t testing.TB, cases []T, n int) []T {
	t.Helper()
	if All() || len(cases) <= n {
		return cases
	}
	seed := uint64(1)
	if text := os.Getenv("SWDT_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("SWDT_SEED: %v", err)
		}
	}
	t.Logf("%d of %d cases, chosen by SWDT_SEED=%d", n, len(cases), seed)
	name := fnv.New64a() // each test has another sample
	name.Write([]byte(t.Name()))
	chosen := rand.New(rand.NewPCG(seed, name.Sum64())).Perm(len(cases))[:n]
	slices.Sort(chosen)
	some := make([]T, n)
	for i, at := range chosen {
		some[i] = cases[at]
	}
	return some
}
