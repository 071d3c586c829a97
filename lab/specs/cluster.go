package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"time"
)

// makeNamespace makes a namespace with the labels of e2e.test.
func makeNamespace(ctx context.Context, base string) (string, error) {
	name := namespaceName(base)
	body, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{
		"name": name, "labels": map[string]string{"e2e-run": runID, "e2e-framework": base}}})
	if err != nil {
		return "", err
	}
	return name, request(ctx, http.MethodPost, "/api/v1/namespaces", body)
}

func deleteNamespace(ctx context.Context, name string) error {
	return request(ctx, http.MethodDelete, "/api/v1/namespaces/"+name, nil)
}

// makePod makes a pod that is bound to a node.
func makePod(ctx context.Context, namespace, name, node string) error {
	body, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": name},
		"spec":   map[string]any{"nodeName": node, "containers": []any{map[string]any{"name": "app", "image": "agnhost"}}},
		"status": map[string]any{"phase": "Pending"}})
	if err != nil {
		return err
	}
	return request(ctx, http.MethodPost, "/api/v1/namespaces/"+namespace+"/pods", body)
}

func deletePod(ctx context.Context, namespace, name string) error {
	return request(ctx, http.MethodDelete, "/api/v1/namespaces/"+namespace+"/pods/"+name, nil)
}

// awaitRunning waits until a pod is Running, and returns its last phase.
func awaitRunning(ctx context.Context, namespace, name string, patience time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	var pod struct{ Status struct{ Phase string } }
	for {
		answer, err := send(context.WithoutCancel(ctx), http.MethodGet, "/api/v1/namespaces/"+namespace+"/pods/"+name, nil)
		if err == nil {
			err = json.Unmarshal(answer, &pod)
		}
		if err != nil || pod.Status.Phase == "Running" {
			return pod.Status.Phase, err
		}
		select {
		case <-ctx.Done():
			return pod.Status.Phase, nil
		case <-ticker.C:
		}
	}
}

// request sends a request whose answer does not matter.
func request(ctx context.Context, method, path string, body []byte) error {
	_, err := send(ctx, method, path, body)
	return err
}

// send sends a request to the API server of the kubeconfig, which must have all certificates in it.
func send(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	text, err := os.ReadFile(*kubeconfig)
	if err != nil {
		return nil, err
	}
	ca, err := value(text, "certificate-authority-data")
	if err != nil {
		return nil, err
	}
	certificate, err := value(text, "client-certificate-data")
	if err != nil {
		return nil, err
	}
	key, err := value(text, "client-key-data")
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	server := regexp.MustCompile(`server"?:\s*"?(https://[^\s",]+)`).FindSubmatch(text)
	if server == nil {
		return nil, errors.New("the kubeconfig has no server")
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots,
		Certificates: []tls.Certificate{pair}}}}
	r, err := http.NewRequestWithContext(ctx, method, string(server[1])+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode >= http.StatusBadRequest {
		why, _ := io.ReadAll(io.LimitReader(answer.Body, 1000))
		return nil, fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, why)
	}
	return io.ReadAll(io.LimitReader(answer.Body, 1<<20))
}

// value returns the decoded value of a key of the kubeconfig.
func value(text []byte, key string) ([]byte, error) {
	found := regexp.MustCompile(key + `"?:\s*"?([A-Za-z0-9+/=]+)`).FindSubmatch(text)
	if found == nil {
		return nil, fmt.Errorf("the kubeconfig has no %s", key)
	}
	return base64.StdEncoding.DecodeString(string(found[1]))
}
