package order_test

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/ui/order"
)

// Each column is in its order; every other arrangement of it must be brought into this order.
func TestQuantitiesAreSortedByTheirValue(t *testing.T) {
	human := func(d time.Duration) string { return duration.HumanDuration(d) }
	for _, test := range []struct {
		name   string
		column []string
	}{
		{"sizes of swdt", []string{ui.Size(0), ui.Size(999), ui.Size(1000), ui.Size(83_600_000), ui.Size(2_000_000_000), "-"}},
		{"rates of swdt", []string{ui.Rate(900, time.Second), ui.Rate(12_300_000, time.Second), ui.Rate(1, 0)}},
		{"times of swdt", []string{ui.Seconds(12 * time.Millisecond), ui.Seconds(900 * time.Millisecond),
			ui.Seconds(12 * time.Second), ui.Seconds(125 * time.Second), ui.Seconds(3 * time.Hour)}},
		{"ages of swdt", []string{ui.Age(12 * time.Second), ui.Age(5 * time.Minute), ui.Age(3 * time.Hour),
			ui.Age(96 * time.Hour), ui.Age(-1)}},
		// apimachinery v0.37, pkg/util/duration
		{"ages of kubectl", []string{human(90 * time.Second), human(150 * time.Second), human(7*time.Hour + 5*time.Minute),
			human(53 * time.Hour), human(200 * 24 * time.Hour), human(800 * 24 * time.Hour), "<unknown>"}},
		{"durations of Go", []string{"900ns", "1.5µs", "2ms", "1.5s", "1m30s", "1h0m0s", "26h2m3.5s"}},
		// https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
		{"quantities of Kubernetes, bytes", []string{"64Ki", "1M", "1Mi", "128974848", "129M", "1Gi", "<none>"}},
		{"quantities of Kubernetes, cores", []string{"0", "100m", "250m", "1", "1500m", "2"}},
		// docker/go-units v0.5, size.go: docker images, docker stats
		{"sizes of docker", []string{"0B", "20.48kB", "1.5MB", "1.25GB"}},
		{"memory of docker stats", []string{"656KiB", "14.3MiB", "1.944GiB"}},
		{"shares of docker stats", []string{"0.00%", "2.50%", "100.03%"}},
		// https://learn.microsoft.com/windows-server/administration/windows-commands/tasklist
		{"memory of tasklist", []string{"8 K", "1,204 K", "64,200 K", "1,064,200 K"}},
		{"numbers", []string{"-3", "-1", "0", ".5", "1.25", "9", "10", "1,234"}},
		{"numbers of few rows without one", []string{"9", "12", "104", "(stopped)", "-"}},
		{"versions", []string{"v1.9.1", "v1.29.0", "v1.30.0-rc.1"}},
		{"names", []string{"win-2", "Win-10", "win-11", ""}},
		{"addresses", []string{"10.0.0.9", "10.0.0.80", "192.168.1.1"}},
		{"times", []string{"2025-12-31 23:59:59", "2026-11-30 19:35:41"}},
	} {
		for turn := range len(test.column) {
			shuffled := slices.Concat(test.column[turn:], test.column[:turn])
			slices.Reverse(shuffled)
			if got := sorted(shuffled, false); !slices.Equal(got, test.column) {
				t.Errorf("%s: sorted %q, want %q", test.name, got, test.column)
			}
		}
	}
}

func sorted(column []string, descending bool) (all []string) {
	for _, i := range order.By(column, descending) {
		all = append(all, column[i])
	}
	return all
}

func TestUnknownValuesAreLastInBothDirections(t *testing.T) {
	column := []string{"-", "2 kB", "unknown", "1 MB", "999 B"}
	if got, want := sorted(column, false), []string{"999 B", "2 kB", "1 MB", "-", "unknown"}; !slices.Equal(got, want) {
		t.Errorf("ascending: %q, want %q", got, want)
	}
	if got, want := sorted(column, true), []string{"1 MB", "2 kB", "999 B", "-", "unknown"}; !slices.Equal(got, want) {
		t.Errorf("descending: %q, want %q", got, want)
	}
}

func TestEqualTextsKeepTheirOrder(t *testing.T) {
	for _, descending := range []bool{false, true} {
		if got, want := order.By([]string{"1.0 kB", "b", "1000 B", "1 kB", "B"}, descending)[:3], []int{0, 2, 3}; !slices.Equal(got, want) {
			t.Errorf("descending %v: %v, want %v", descending, got, want)
		}
	}
}
