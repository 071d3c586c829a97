//go:build oracles

package apiserver

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// recordWrite writes an object that swdt creates or applies into the folder that SWDT_MANIFESTS names, for the program of
// lab/kubernetes/admit. Objects of a dry run count too: they are what a user would get.
func recordWrite(r *http.Request, request Request, body []byte) error {
	folder := os.Getenv("SWDT_MANIFESTS")
	applies := request.Verb == "patch" && strings.HasPrefix(r.Header.Get("Content-Type"), "application/apply-patch")
	if folder == "" || r.UserAgent() != "swdt" || request.Subresource != "" || request.Verb != "create" && !applies {
		return nil
	}
	object, err := yaml.YAMLToJSON(body)
	if err != nil {
		return fmt.Errorf("record an object: %w", err)
	}
	data, err := json.Marshal(map[string]any{"namespace": request.Namespace, "object": json.RawMessage(object)})
	if err != nil {
		return fmt.Errorf("record an object: %w", err)
	}
	sum := sha256.Sum256(data)
	return os.WriteFile(filepath.Join(folder, request.Resource+"-"+hex.EncodeToString(sum[:8])+".json"), data, 0o600)
}
