package rollout

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
)

// hashLength is the number of hex digits of a content's hash. The hash distinguishes the contents of
// one cluster; it proves nothing.
const hashLength = 16

// HashOf returns the identity of a content: equal contents have equal hashes.
func HashOf(c fleetv1.Content) string { return SumOf(c)[:hashLength] }

// SumOf returns the whole SHA-256 of a content, in hex digits.
func SumOf(c fleetv1.Content) string {
	text, err := json.Marshal(c) // the keys of maps are sorted
	if err != nil {              // a content has no value that JSON cannot express
		panic(err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
