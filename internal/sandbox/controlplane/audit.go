package controlplane

import (
	"encoding/json"
	"fmt"
	"os"
)

// auditArgs returns the API server's arguments that make it record requests.
func (l layout) auditArgs(users []string) []string {
	if len(users) == 0 {
		return nil
	}
	return []string{"--audit-policy-file=" + l.auditPolicy(), "--audit-log-path=" + l.auditLog(),
		// A request is recorded before its answer is sent, so a client that has the answer finds the record.
		"--audit-log-mode=blocking-strict"}
}

// writeAuditPolicy writes the policy that records the requests of these users, without their bodies.
func (l layout) writeAuditPolicy(users []string) error {
	if len(users) == 0 {
		return nil
	}
	policy, err := json.Marshal(map[string]any{
		"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": []string{"RequestReceived"},
		"rules": []any{map[string]any{"level": "Metadata", "users": users}, map[string]any{"level": "None"}},
	})
	if err != nil {
		return fmt.Errorf("write the audit policy: %w", err)
	}
	if err := os.WriteFile(l.auditPolicy(), policy, 0o600); err != nil {
		return fmt.Errorf("write the audit policy: %w", err)
	}
	return nil
}
