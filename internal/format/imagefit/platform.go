package imagefit

import (
	"strconv"
	"strings"
)

// Platform is the platform of a manifest, as an index or the configuration of an image names it.
type Platform struct {
	OS           string   `json:"os"`
	Architecture string   `json:"architecture"`
	Variant      string   `json:"variant,omitempty"`
	OSVersion    string   `json:"os.version,omitempty"`
	OSFeatures   []string `json:"os.features,omitempty"`
}

const (
	windows = "windows"
	amd64   = "amd64"
	i386    = "386"
)

// system returns the operating system as containerd on Windows compares it: in lower case, and Windows if there is none.
func (p Platform) system() string {
	if p.OS == "" {
		return windows
	}
	return strings.ToLower(p.OS)
}

// architecture returns the processor with its variant as containerd compares it, such as amd64 for x86_64 and for the
// variant v1 of amd64. Of other processors than amd64 and 386 it returns the name that the platform has.
func (p Platform) architecture() (name, variant string) {
	name, variant = strings.ToLower(p.Architecture), strings.ToLower(p.Variant)
	switch name {
	case "i386":
		return i386, ""
	case "x86_64", "x86-64", amd64:
		if variant == "v1" {
			variant = ""
		}
		return amd64, variant
	}
	return name, variant
}

// lenientVersion reads a version as containerd 1.6 and 1.7 do: a part that is no number is 0, and the numbers are cut to
// 8, 8 and 16 bits. Fewer than three parts are the version 0.0.0.
func lenientVersion(text string) Build {
	parts := strings.Split(text, ".")
	if len(parts) < 3 {
		return Build{}
	}
	var numbers [3]int
	for i := range numbers {
		numbers[i], _ = strconv.Atoi(parts[i]) // out of range: the nearest number
	}
	return Build{Major: numbers[0] & 0xff, Minor: numbers[1] & 0xff, Build: numbers[2] & 0xffff}
}

// limitedVersion reads a version as containerd 2.0.0 and 2.0.1 do: a part that is no number is 0, and one that is too large
// for 8, 8 and 16 bits is the largest number of that size.
func limitedVersion(text string) Build {
	b, _ := unsignedVersion(text)
	return b
}

// strictVersion reads a version as containerd does since 2.0.2: a version with a part that is no number of 8, 8 and 16 bits
// is 0.0.0.
func strictVersion(text string) Build {
	b, ok := unsignedVersion(text)
	if !ok {
		return Build{}
	}
	return b
}

// unsignedVersion reads the first three parts of a version; false if one of them is no number of 8, 8 and 16 bits.
func unsignedVersion(text string) (b Build, ok bool) {
	parts := strings.Split(text, ".")
	if len(parts) < 3 {
		return b, false
	}
	ok = true
	for i, part := range []struct {
		bits int
		to   *int
	}{{8, &b.Major}, {8, &b.Minor}, {16, &b.Build}} {
		n, err := strconv.ParseUint(parts[i], 10, part.bits) // too large: the largest number
		*part.to, ok = int(n), ok && err == nil
	}
	return b, ok
}

// revision returns the fourth part of a version; 0 if it has none, or if that is no number.
func revision(version string) int {
	parts := strings.Split(version, ".")
	if len(parts) < 4 {
		return 0
	}
	n, err := strconv.Atoi(parts[3])
	if err != nil {
		return 0
	}
	return n
}
