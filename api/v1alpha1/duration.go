package v1alpha1

import (
	"fmt"
	"time"
)

// MarshalText writes the duration as Go does (1m30s), for YAML and JSON.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads 90s, 5m or 1m30s. It refuses a number without a unit,
// which could be seconds, milliseconds or a typing error.
func (d *Duration) UnmarshalText(text []byte) error {
	span, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is not a duration such as 90s, 5m or 1m30s", text)
	}
	d.Duration = span
	return nil
}
