package ui

import (
	"fmt"
	"strings"
	"time"
)

// Size formats a number of bytes for people: 0 B, 999 B, 83.6 MB. Units are powers
// of 1000, as for disks and links.
func Size(bytes int64) string {
	if bytes < 1000 {
		return fmt.Sprintf("%d B", bytes)
	}
	value, units := float64(bytes)/1000, []string{"kB", "MB", "GB", "TB", "PB", "EB"}
	for value >= 999.95 && len(units) > 1 {
		value, units = value/1000, units[1:]
	}
	return fmt.Sprintf("%.1f %s", value, units[0])
}

// Rate formats bytes per second: 12.3 MB/s.
func Rate(bytes int64, in time.Duration) string {
	if in <= 0 {
		return "-"
	}
	return Size(int64(float64(bytes)/in.Seconds())) + "/s"
}

// Seconds formats a time that the user waited: 12ms, 0.9s, 12.0s, 2m05s.
func Seconds(d time.Duration) string {
	if d < 95*time.Millisecond {
		return fmt.Sprintf("%dms", d.Round(time.Millisecond).Milliseconds())
	}
	if d < 59950*time.Millisecond {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	d = d.Round(time.Second)
	return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
}

// Age formats the time since a state began, in one unit: 12s, 5m, 3h, 4d.
func Age(d time.Duration) string {
	switch {
	case d < 0:
		return "-"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// Hash shortens a SHA-256 to its first digits, enough to distinguish two builds at a
// glance.
func Hash(sha256 string) string {
	if sha256 == "" {
		return "-"
	}
	return sha256[:min(6, len(sha256))]
}

// Version formats a version with a leading v.
func Version(version string) string {
	if version == "" {
		return "-"
	}
	return "v" + strings.TrimPrefix(version, "v")
}
