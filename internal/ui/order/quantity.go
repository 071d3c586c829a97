package order

import (
	"math"
	"regexp"
	"strconv"
	"strings"
)

// unit is the kind of a quantity.
type unit int

const (
	none unit = iota // the text is no quantity
	number
	bytes    // also bytes per second
	duration // in seconds
	percent
)

// form is a text that was parsed.
type form struct {
	unit  unit
	value float64
}

// quantityPattern matches a number, with commas between its thousands or not, and the unit behind it, if any.
var quantityPattern = regexp.MustCompile(`^([-+]?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?|[-+]?\.[0-9]+)\s*([A-Za-zµμ%]*(?:/s)?)$`)

// durationPattern matches the parts of a duration, such as 2d3h, 1h2m3.5s or 250ms.
var durationPattern = regexp.MustCompile(`^(?:[0-9]+(?:\.[0-9]+)?(?:ns|us|µs|μs|ms|s|m|h|d|w|y) ?)+$`)

var durationPart = regexp.MustCompile(`([0-9]+(?:\.[0-9]+)?)(ns|us|µs|μs|ms|s|m|h|d|w|y)`)

// parse returns the quantity that a text is, in bytes, seconds, percents or as a plain number. If milli is true, 250m
// is 0.25.
func parse(text string, milli bool) form {
	text = strings.TrimSpace(strings.ReplaceAll(text, "\u00a0", " "))
	match := quantityPattern.FindStringSubmatch(text)
	switch {
	case match != nil && match[2] == "m" && milli:
		return form{number, float(match[1]) / 1000}
	case durationPattern.MatchString(text):
		return form{duration, seconds(text)}
	case match == nil:
		return form{}
	}
	value, name := float(match[1]), match[2]
	switch {
	case name == "":
		return form{number, value}
	case name == "%":
		return form{percent, value}
	}
	if factor, ok := bytesOf(strings.TrimSuffix(strings.TrimSuffix(name, "/s"), "ps")); ok {
		return form{bytes, value * factor}
	}
	return form{}
}

// endsInMinutes reports whether a duration has the single unit m.
func endsInMinutes(text string) bool {
	parts := durationPart.FindAllStringSubmatch(text, -1)
	return len(parts) == 1 && parts[0][2] == "m"
}

// seconds returns the duration that a text of durationPattern has. A year has 365 days, as in kubectl's ages.
func seconds(text string) (sum float64) {
	const day = 24 * 60 * 60
	factors := map[string]float64{"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 60 * 60,
		"d": day, "w": 7 * day, "y": 365 * day}
	for _, part := range durationPart.FindAllStringSubmatch(text, -1) {
		sum += float(part[1]) * factors[part[2]]
	}
	return sum
}

// bytesOf returns the number of bytes of a unit: kB and Docker's kB are 1000 bytes, KiB and Kubernetes' Ki 1024, and
// the K and KB of Windows' programs 1024 too.
func bytesOf(name string) (float64, bool) {
	letter := strings.TrimSuffix(name, "B")
	if letter == "" {
		return 1, true
	}
	base := 1000.0
	switch {
	case strings.HasSuffix(letter, "i"):
		base, letter = 1024, strings.TrimSuffix(letter, "i")
	case letter == "K":
		base = 1024
	}
	power := strings.Index("kMGTPE", letter)
	if letter == "K" {
		power = 0
	}
	if len(letter) != 1 || power < 0 {
		return 0, false
	}
	return math.Pow(base, float64(power+1)), true
}

// float returns the value of a number of quantityPattern or durationPart.
func float(text string) float64 {
	value, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
	if err != nil {
		return math.NaN() // not possible: the patterns match numbers only
	}
	return value
}
