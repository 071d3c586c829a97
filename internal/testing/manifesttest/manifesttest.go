// Package manifesttest records objects that swdt emits, for the check by Kubernetes' own validation (scripts/oracles.sh).
package manifesttest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// Write writes an object of a namespace ("" for none) into the folder that SWDT_MANIFESTS names. It fails the test if
// the variable is empty. The simulated API server writes the objects that it receives in the same form.
func Write(t testing.TB, namespace string, object any) {
	t.Helper()
	folder := os.Getenv("SWDT_MANIFESTS")
	if folder == "" {
		t.Fatal("SWDT_MANIFESTS is empty: run scripts/oracles.sh")
	}
	text, err := json.Marshal(map[string]any{"namespace": namespace, "object": object})
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(text)
	if err := os.WriteFile(filepath.Join(folder, hex.EncodeToString(sum[:8])+".json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
}
