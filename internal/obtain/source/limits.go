package source

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Limits bound a download, since the server determines its size and speed. 0 in a field means the
// value of the field's environment variable or, if that is not set, the field's default. A negative
// value means no limit.
type Limits struct {
	// Size is the maximum size of a file, in bytes. Default 1 GiB, many times the largest binary.
	Size int64
	// Stall is how long a download may go on without receiving data. Default 1 minute.
	Stall time.Duration
	// Rate is the minimum average in a period of twice Stall, in bytes per second.
	// Default 1 KiB/s.
	Rate int64
	// Total is how long a download may take in one run. Default 2 hours. The next run continues an
	// incomplete download.
	Total time.Duration
}

// The environment variables that set limits: a size or rate such as 500M or 2GiB, a
// time such as 90s or 2h, and 0 for no limit.
const (
	SizeVariable  = "SWDT_DOWNLOAD_MAX_SIZE"
	StallVariable = "SWDT_DOWNLOAD_STALL"
	RateVariable  = "SWDT_DOWNLOAD_MIN_RATE"
	TotalVariable = "SWDT_DOWNLOAD_TIMEOUT"
)

func defaultLimits() Limits {
	return Limits{Size: 1 << 30, Stall: time.Minute, Rate: 1 << 10, Total: 2 * time.Hour}
}

// complete sets the fields that are 0, from the environment or else from the defaults.
func (l Limits) complete(lookup func(string) (string, bool)) (Limits, error) {
	var of Limits
	err := errors.Join(
		limit(&of.Size, SizeVariable, lookup, parseBytes), limit(&of.Stall, StallVariable, lookup, time.ParseDuration),
		limit(&of.Rate, RateVariable, lookup, parseBytes), limit(&of.Total, TotalVariable, lookup, time.ParseDuration))
	if err != nil {
		return l, err
	}
	usual := defaultLimits()
	return Limits{
		Size: cmp.Or(l.Size, of.Size, usual.Size), Stall: cmp.Or(l.Stall, of.Stall, usual.Stall),
		Rate: cmp.Or(l.Rate, of.Rate, usual.Rate), Total: cmp.Or(l.Total, of.Total, usual.Total),
	}, nil
}

// limit sets *to from the environment variable called name. If the variable is not set, limit
// changes nothing. The value 0 in the variable means no limit.
func limit[T ~int64](to *T, name string, lookup func(string) (string, bool), parse func(string) (T, error)) error {
	text, ok := lookup(name)
	if !ok || text == "" {
		return nil
	}
	value, err := parse(text)
	if err != nil || value < 0 {
		return fmt.Errorf("%s is %q: write a size such as 500M, a time such as 2h, or 0 for no limit", name, text)
	}
	if *to = value; value == 0 {
		*to = -1
	}
	return nil
}

// parseBytes parses 1000, 500M, 2G or 2GiB. All units are powers of 1024.
func parseBytes(text string) (int64, error) {
	number := strings.TrimSuffix(strings.TrimSuffix(strings.ToUpper(strings.TrimSpace(text)), "IB"), "B")
	unit := int64(1)
	if n := len(number); n > 0 {
		if power := strings.IndexByte("KMGT", number[n-1]); power >= 0 {
			unit, number = 1<<(10*(power+1)), strings.TrimSpace(number[:n-1])
		}
	}
	value, err := strconv.ParseInt(number, 10, 64)
	if err == nil && value > math.MaxInt64/unit {
		err = strconv.ErrRange
	}
	return value * unit, err
}
