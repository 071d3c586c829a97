package cluster_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	ktesting "k8s.io/client-go/testing"
	bootstraptoken "k8s.io/cluster-bootstrap/token/util"
	"sigs.k8s.io/yaml"

	"github.com/swdt-dev/swdt/internal/cluster"
)

// clusterInfoObject returns cluster-info, signed for these tokens.
func clusterInfoObject(signed ...string) *corev1.ConfigMap {
	m := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-public", Name: "cluster-info"},
		Data: map[string]string{"kubeconfig": "apiVersion: v1\nkind: Config\nclusters:\n- name: \"\"\n  " +
			"cluster: {server: \"https://cp:6443\"}\n"},
	}
	for _, id := range signed {
		m.Data["jws-kubeconfig-"+id] = "a..b"
	}
	return m
}

// signLater signs as the controller manager does, some time after a token is made.
func signLater(client *fake.Clientset, after time.Duration) {
	client.PrependReactor("create", "secrets", func(a ktesting.Action) (bool, runtime.Object, error) {
		secret := a.(ktesting.CreateAction).GetObject().(*corev1.Secret)
		time.AfterFunc(after, func() {
			_ = client.Tracker().Update(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
				clusterInfoObject(secret.StringData["token-id"]), "kube-public")
		})
		return false, nil, nil
	})
}

func secrets(t *testing.T, client *fake.Clientset) []corev1.Secret {
	t.Helper()
	list, err := client.CoreV1().Secrets("kube-system").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func TestMintToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, client := fakeCluster(clusterInfoObject())
		signLater(client, 3*time.Second)
		began := time.Now()
		token, err := c.MintToken(t.Context(), cluster.TokenOptions{Node: "win-1", TTL: 10 * time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 3*time.Second || took > 4*time.Second {
			t.Errorf("returned after %s, though it was signed after 3 s", took)
		}
		if !bootstraptoken.IsValidBootstrapToken(token.Value()) {
			t.Error("the value is no bootstrap token")
		}
		found := secrets(t, client)
		if len(found) != 1 {
			t.Fatalf("%d Secrets", len(found))
		}
		s := found[0]
		id, secret, _ := strings.Cut(token.Value(), ".")
		for key, want := range map[string]string{
			"token-id": id, "token-secret": secret, "usage-bootstrap-authentication": "true",
			"usage-bootstrap-signing": "true",
			"auth-extra-groups":       "system:bootstrappers:kubeadm:default-node-token",
			"expiration":              began.Add(10 * time.Minute).UTC().Format(time.RFC3339),
			"description":             "swdt join of node win-1",
		} {
			if s.StringData[key] != want {
				t.Errorf("%s is not as wanted", key)
			}
		}
		switch {
		case s.Name != "bootstrap-token-"+id:
			t.Errorf("s.Name = %v, want %v", s.Name, "bootstrap-token-"+id)
		case s.Type != "bootstrap.kubernetes.io/token":
			t.Errorf("s.Type = %q, want %q", s.Type, "bootstrap.kubernetes.io/token")
		case token.ID() != id:
			t.Errorf("token.ID() is wrong; Secret %s of type %s, token %s", s.Name, s.Type, token.ID())
		}
		for range 2 { // the second call finds nothing, which is not an error
			if err := c.DeleteToken(t.Context(), token); err != nil {
				t.Fatal(err)
			}
		}
		if left := secrets(t, client); len(left) != 0 {
			t.Errorf("%d Secrets are left", len(left))
		}
	})
}

func TestTokenHidesItsSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, client := fakeCluster(clusterInfoObject())
		signLater(client, 0)
		token, err := c.MintToken(t.Context(), cluster.TokenOptions{Node: "win-1"})
		if err != nil {
			t.Fatal(err)
		}
		_, secret, _ := strings.Cut(token.Value(), ".")
		var printed bytes.Buffer
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T"} {
			for _, value := range []any{token, &token, struct{ T cluster.Token }{token}, []cluster.Token{token},
				fmt.Errorf("%w: %v", errors.ErrUnsupported, token)} {
				fmt.Fprintf(&printed, verb+"\n", value)
			}
		}
		for _, value := range []any{token, &token, map[string]any{"t": token}, struct{ T cluster.Token }{token}} {
			document, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			printed.Write(document)
			if document, err = yaml.Marshal(value); err != nil {
				t.Fatal(err)
			}
			printed.Write(document)
			slog.New(slog.NewTextHandler(&printed, nil)).Info("x", "t", value)
			slog.New(slog.NewJSONHandler(&printed, nil)).Info("x", "t", value)
		}
		if document, err := json.Marshal(token); err != nil || string(document) != `"bootstrap token `+token.ID()+`"` {
			t.Errorf("as JSON it is %s, %v", document, err)
		}
		if !strings.Contains(printed.String(), token.ID()) {
			t.Error("the text lacks the token ID, so this checks nothing")
		}
		for _, form := range []string{secret, fmt.Sprintf("%x", secret), fmt.Sprintf("%X", secret)} {
			if strings.Contains(printed.String(), form) {
				t.Errorf("the text has the secret as %q", form)
			}
		}
	})
}

func TestUnsignedTokenIsAnErrorAndIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, client := fakeCluster(clusterInfoObject("abcdef"))
		_, err := c.MintToken(t.Context(), cluster.TokenOptions{Node: "win-1"})
		var unsigned *cluster.UnsignedError
		if !errors.As(err, &unsigned) {
			t.Fatalf("MintToken = %v, wanted an UnsignedError", err)
		}
		if left := secrets(t, client); len(left) != 0 {
			t.Errorf("%d Secrets are left", len(left))
		}
	})
}

func TestATokenWithoutClusterInfo(t *testing.T) {
	c, client := fakeCluster()
	_, err := c.MintToken(context.Background(), cluster.TokenOptions{Node: "win-1"})
	var none *cluster.NoClusterInfoError
	if !errors.As(err, &none) {
		t.Fatalf("MintToken = %v, wanted a NoClusterInfoError", err)
	}
	if left := secrets(t, client); len(left) != 0 {
		t.Errorf("%d Secrets are left", len(left))
	}
}

// The requests that clean up after an interruption must not use the context that has
// ended; the fakes would ignore the context.
func TestAnInterruptedMintLeavesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	deleted := make(chan string, 1)
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost:
			answer(w, http.StatusCreated, corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}})
		case r.Method == http.MethodDelete:
			deleted <- r.URL.Path
			answer(w, http.StatusOK, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
				Status: "Success"})
		case strings.HasSuffix(r.URL.Path, "/cluster-info"):
			cancel()
			answer(w, http.StatusOK, clusterInfoObject())
		}
	})
	_, err := c.MintToken(ctx, cluster.TokenOptions{Node: "win-1"})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("MintToken = %v, wanted the context's error", err)
	}
	select {
	case path := <-deleted:
		if !strings.HasPrefix(path, "/api/v1/namespaces/kube-system/secrets/bootstrap-token-") {
			t.Errorf("deleted %s", path)
		}
	default:
		t.Error("the Secret is left")
	}
}

// The answer to the creation may be lost although the Secret was created.
func TestMintSurvivesALostAnswer(t *testing.T) {
	c, client := fakeCluster(clusterInfoObject())
	client.PrependReactor("create", "secrets", func(a ktesting.Action) (bool, runtime.Object, error) {
		secret := a.(ktesting.CreateAction).GetObject()
		if err := client.Tracker().Create(a.GetResource(), secret, a.GetNamespace()); err != nil {
			t.Error(err)
		}
		return true, nil, errors.New("connection reset")
	})
	if _, err := c.MintToken(context.Background(), cluster.TokenOptions{Node: "win-1"}); err == nil {
		t.Error("MintToken succeeded")
	}
	if left := secrets(t, client); len(left) != 0 {
		t.Errorf("%d Secrets are left", len(left))
	}
}

func TestAMintThatIsForbidden(t *testing.T) {
	c, client := fakeCluster(clusterInfoObject())
	client.PrependReactor("create", "secrets", func(ktesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", errors.New("no"))
	})
	_, err := c.MintToken(context.Background(), cluster.TokenOptions{Node: "win-1"})
	var forbidden *cluster.ForbiddenError
	if !errors.As(err, &forbidden) || forbidden.Missing.String() != "create secrets -n kube-system" {
		t.Errorf("MintToken = %v", err)
	}
	if slices.ContainsFunc(client.Actions(), func(a ktesting.Action) bool { return a.GetVerb() == "delete" }) {
		t.Error("something was deleted that cannot have been made")
	}
}

func TestSweepTokens(t *testing.T) {
	token := func(id, owner, node string, kind corev1.SecretType) *corev1.Secret {
		return &corev1.Secret{Type: kind, ObjectMeta: metav1.ObjectMeta{
			Namespace: "kube-system", Name: "bootstrap-token-" + id,
			Labels:      map[string]string{"app.kubernetes.io/managed-by": owner},
			Annotations: map[string]string{"swdt.dev/node": node},
		}}
	}
	const kind = "bootstrap.kubernetes.io/token"
	c, client := fakeCluster(
		token("aaaaaa", "swdt", "win-1", kind), token("bbbbbb", "swdt", "win-2", kind),
		token("cccccc", "helm", "win-1", kind),
		token("dddddd", "swdt", "win-1", "Opaque"), token("eeeeee", "swdt", "win-1", kind))
	swept, err := c.SweepTokens(context.Background(), "win-1")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(swept)
	if !slices.Equal(swept, []string{"aaaaaa", "eeeeee"}) {
		t.Errorf("swept %v", swept)
	}
	var left []string
	for _, s := range secrets(t, client) {
		left = append(left, s.Name)
	}
	slices.Sort(left)
	if !slices.Equal(left, []string{"bootstrap-token-bbbbbb", "bootstrap-token-cccccc", "bootstrap-token-dddddd"}) {
		t.Errorf("left are %v", left)
	}
}

// Tokens expire by the API server's clock, not by this machine's.
func TestATokenLivesByTheServersClock(t *testing.T) {
	const ahead = 3 * time.Hour
	var made corev1.Secret
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
		switch {
		case r.Method == http.MethodPost:
			body, err := io.ReadAll(r.Body)
			if err == nil { // the request is protobuf
				_, _, err = scheme.Codecs.UniversalDeserializer().Decode(body, nil, &made)
			}
			if err != nil {
				t.Error(err)
			}
			answer(w, http.StatusCreated, made)
		case strings.HasSuffix(r.URL.Path, "/cluster-info"):
			answer(w, http.StatusOK, clusterInfoObject(made.StringData["token-id"]))
		default:
			answer(w, http.StatusOK, map[string]string{})
		}
	})
	if _, err := c.MintToken(context.Background(), cluster.TokenOptions{Node: "win-1",
		TTL: 10 * time.Minute}); err != nil {
		t.Fatal(err)
	}
	expires, err := time.Parse(time.RFC3339, made.StringData["expiration"])
	if err != nil {
		t.Fatal(err)
	}
	if lives := time.Until(expires) - ahead; lives < 5*time.Minute || lives > 11*time.Minute {
		t.Errorf("by the server's clock it lives %s", lives)
	}
}
