package v1alpha1

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Quantity is a number of bytes, written as Kubernetes does: 8Gi, 512Mi, 1.5Gi, 64G,
// or a plain number of bytes.
type Quantity int64

// units returns the suffixes of a quantity: first those of powers of 1024, then those of
// powers of 1000, the largest of each kind first.
func units() []struct {
	suffix string
	bytes  float64
} {
	return []struct {
		suffix string
		bytes  float64
	}{
		{"Ti", 1 << 40}, {"Gi", 1 << 30}, {"Mi", 1 << 20}, {"Ki", 1 << 10},
		{"T", 1e12}, {"G", 1e9}, {"M", 1e6}, {"k", 1e3}, {"", 1},
	}
}

// UnmarshalText reads a quantity. It refuses a fraction of a byte, a negative quantity,
// and a quantity of 2^63 bytes or more.
func (q *Quantity) UnmarshalText(text []byte) error {
	wrong := fmt.Errorf("%.40q is not a size such as 8Gi or 512Mi", text)
	for _, unit := range units() {
		digits, ok := strings.CutSuffix(string(text), unit.suffix)
		if !ok {
			continue
		}
		if digits == "" || strings.Trim(digits, "0123456789.") != "" {
			return wrong
		}
		value, err := strconv.ParseFloat(digits, 64)
		bytes := value * unit.bytes
		if err != nil || bytes != math.Trunc(bytes) || bytes >= 1<<63 {
			return wrong
		}
		*q = Quantity(bytes)
		return nil
	}
	return wrong
}

// String returns the quantity in the largest unit of powers of 1024 in which it is a
// whole number (8Gi), or as a plain number of bytes if there is no such unit.
func (q Quantity) String() string {
	for _, unit := range units()[:4] {
		if size := Quantity(unit.bytes); q != 0 && q%size == 0 {
			return fmt.Sprintf("%d%s", q/size, unit.suffix)
		}
	}
	return strconv.FormatInt(int64(q), 10)
}

// MarshalText writes the quantity as String does, for YAML and JSON.
func (q Quantity) MarshalText() ([]byte, error) { return []byte(q.String()), nil }
