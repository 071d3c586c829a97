package apiserver_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/swdt-dev/swdt/internal/sandbox/apiserver"
)

// asNode gets a certificate with a bootstrap token, as a kubelet does.
func (f *fixture) asNode(t *testing.T, name string) *kubernetes.Clientset {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "system:node:" + name, Organization: []string{"system:nodes"}},
	}, private)
	if err != nil {
		t.Fatal(err)
	}
	requests := f.as(t, testToken).CertificatesV1().CertificateSigningRequests()
	made, err := requests.Create(t.Context(), &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "csr-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	signed, err := requests.Get(t.Context(), made.Name, metav1.GetOptions{})
	if err != nil || len(signed.Status.Certificate) == 0 {
		t.Fatalf("it was not signed: %+v %v", signed.Status, err)
	}
	key, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(f.config)
	config.CertData, config.KeyData = signed.Status.Certificate,
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: key})
	client, _, _ := clients(t, config)
	return client
}

func TestNodePermissions(t *testing.T) {
	f := start(t, apiserver.Options{})
	f.mint(t)
	node := f.asNode(t, "win-1")
	nodes := node.CoreV1().Nodes()
	object := func(name string, labels map[string]string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	}
	for _, forbidden := range []*corev1.Node{
		object("win-2", nil),
		object("win-1", map[string]string{"node-role.kubernetes.io/worker": ""}),
		object("win-1", map[string]string{"x.node-restriction.kubernetes.io/y": ""}),
	} {
		if _, err := nodes.Create(t.Context(), forbidden, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("%s with %v: %v", forbidden.Name, forbidden.Labels, err)
		}
	}
	_, err := nodes.Create(t.Context(), object("win-1", map[string]string{"k8s.io/a": ""}), metav1.CreateOptions{})
	if want := `node "win-1" is not allowed to set the following labels: k8s.io/a`; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	made, err := nodes.Create(t.Context(),
		object("win-1", map[string]string{"kubernetes.io/os": "windows", "team": "a"}), metav1.CreateOptions{})
	if err != nil || !hasTaint(made, "node.kubernetes.io/not-ready") {
		t.Fatalf("registered %+v, %v", made, err)
	}
	if _, err := nodes.Patch(t.Context(), "win-1", types.MergePatchType, []byte(`{"spec":{"taints":null}}`),
		metav1.PatchOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("take its own taints off: %v", err)
	}
	if _, err := f.client.CoreV1().Nodes().Patch(t.Context(), "win-1", types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"k8s.io/a":""}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err = nodes.Patch(t.Context(), "win-1", types.MergePatchType, []byte(`{"metadata":{"labels":{"k8s.io/a":null}}}`),
		metav1.PatchOptions{})
	if want := "is not allowed to modify labels: k8s.io/a"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("remove a label that others set: %v, want %s", err, want)
	}
	if _, err := node.CoreV1().Secrets("kube-system").List(t.Context(),
		metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("list secrets: %v", err)
	}
	if err := node.CoreV1().RESTClient().Get().AbsPath("/metrics").Do(t.Context()).Error(); !apierrors.IsForbidden(err) {
		t.Errorf("read the metrics of the API server: %v", err)
	}
	if err := nodes.Delete(t.Context(), "win-1", metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("delete itself: %v", err)
	}
}

func TestAccessReviewsAreAnswered(t *testing.T) {
	f := start(t, apiserver.Options{})
	f.mint(t)
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "create", Resource: "secrets",
			Namespace: "kube-system"},
	}}
	for _, test := range []struct {
		client *kubernetes.Clientset
		wanted bool
	}{{f.client, true}, {f.as(t, testToken), false}} {
		answer, err := test.client.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), review,
			metav1.CreateOptions{})
		if err != nil || answer.Status.Allowed != test.wanted {
			t.Errorf("allowed: %t, wanted %t (%v)", answer.Status.Allowed, test.wanted, err)
		}
	}
	anyone := f.as(t, "")
	if _, err := anyone.Discovery().ServerVersion(); err != nil {
		t.Errorf("anyone asks for the version: %v", err)
	}
	if _, err := anyone.Discovery().ServerGroups(); !apierrors.IsForbidden(err) {
		t.Errorf("anyone asks what there is: %v", err)
	}
}

// The cluster does not sign a request for another signer.
func TestNotEveryRequestIsSigned(t *testing.T) {
	f := start(t, apiserver.Options{})
	made, err := f.client.CertificatesV1().CertificateSigningRequests().Create(t.Context(),
		&certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: "mine"},
			Spec: certificatesv1.CertificateSigningRequestSpec{Request: []byte("nothing"),
				SignerName: "example.com/other"},
		}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if made, err = f.client.CertificatesV1().CertificateSigningRequests().Get(t.Context(), made.Name,
		metav1.GetOptions{}); err != nil || len(made.Status.Certificate) != 0 {
		t.Errorf("signed: %+v, %v", made.Status, err)
	}
}
