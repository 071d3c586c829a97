package controlplane

import (
	"encoding/json"
	"fmt"
	"os"
)

// admissionArgs returns the API server's arguments for a Pod Security Standard.
func (l layout) admissionArgs(podSecurity string) []string {
	if podSecurity == "" {
		return nil
	}
	return []string{"--admission-control-config-file=" + l.admission()}
}

// writeAdmission writes the configuration that enforces a Pod Security Standard in namespaces without labels.
func (l layout) writeAdmission(podSecurity string) error {
	if podSecurity == "" {
		return nil
	}
	config, err := json.Marshal(map[string]any{
		"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration",
		"plugins": []any{map[string]any{"name": "PodSecurity", "configuration": map[string]any{
			"apiVersion": "pod-security.admission.config.k8s.io/v1", "kind": "PodSecurityConfiguration",
			"defaults": map[string]any{"enforce": podSecurity, "warn": podSecurity, "audit": podSecurity},
		}}},
	})
	if err == nil {
		err = os.WriteFile(l.admission(), config, 0o600)
	}
	if err != nil {
		return fmt.Errorf("write the configuration of admission: %w", err)
	}
	return nil
}
