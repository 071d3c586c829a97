package kindcluster_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kind "sigs.k8s.io/kind/pkg/cluster"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/swdt-dev/swdt/internal/day0/kindcluster"
	"github.com/swdt-dev/swdt/internal/day0/kindcluster/kindtest"
	"github.com/swdt-dev/swdt/internal/format/windowstext"
	"github.com/swdt-dev/swdt/internal/ui"
)

// writingKind is a Kind that changes a kubeconfig as kind does.
type writingKind struct {
	*kindtest.Kind
	path string
}

func (k writingKind) Create(name string, options ...kind.CreateOption) error {
	err := k.Kind.Create(name, options...)
	return errors.Join(err, k.change(func(c *api.Config) {
		c.Clusters["kind-"+name] = &api.Cluster{Server: "https://127.0.0.1:1"}
		c.Contexts["kind-"+name] = &api.Context{Cluster: "kind-" + name, AuthInfo: "kind-" + name}
		c.AuthInfos["kind-"+name] = &api.AuthInfo{Token: "new"}
		c.CurrentContext = "kind-" + name
	}))
}

func (k writingKind) Delete(name, kubeconfig string) error {
	err := k.Kind.Delete(name, kubeconfig)
	if _, missing := os.Stat(k.path); errors.Is(missing, fs.ErrNotExist) {
		return err
	}
	return errors.Join(err, k.change(func(c *api.Config) {
		delete(c.Clusters, "kind-"+name)
		delete(c.Contexts, "kind-"+name)
		delete(c.AuthInfos, "kind-"+name)
		if c.CurrentContext == "kind-"+name {
			c.CurrentContext = ""
		}
	}))
}

// change changes the kubeconfig, and writes it without its comments.
func (k writingKind) change(change func(*api.Config)) error {
	text, err := os.ReadFile(k.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	c, err := clientcmd.Load(text)
	if err != nil {
		return err
	}
	change(c)
	return clientcmd.WriteToFile(*c, k.path)
}

const usersKubeconfig = `# the clusters of my team
kind: Config
apiVersion: v1
current-context: production
contexts: [{name: production, context: {cluster: production, user: me, namespace: shop}}]
clusters: [{name: production, cluster: {server: https://10.1.2.3:6443}}]
users: [{name: me, user: {token: secret}}]
`

func TestDeleteRestoresTheKubeconfig(t *testing.T) {
	const none = "(no file)"
	add := func(c *api.Config) { c.Contexts["new"] = &api.Context{Cluster: "production", AuthInfo: "me"} }
	for name, test := range map[string]struct {
		before    string
		meanwhile func(*api.Config)
		want      string // the whole file; empty: only current is compared
		current   string
	}{
		"a file with another cluster": {before: usersKubeconfig, want: usersKubeconfig, current: "production"},
		"no file":                     {before: none, want: none},
		"an empty file":               {before: "", want: ""},
		"without a current context": {
			before:  strings.Replace(usersKubeconfig, "current-context: production\n", "", 1),
			want:    strings.Replace(usersKubeconfig, "current-context: production\n", "", 1),
			current: "",
		},
		"a context that was added meanwhile": {before: usersKubeconfig, meanwhile: add, current: "production"},
		"another current context meanwhile": {
			before: usersKubeconfig, current: "new",
			meanwhile: func(c *api.Config) { add(c); c.CurrentContext = "new" },
		},
		"without the earlier current context": {
			before: usersKubeconfig, current: "",
			meanwhile: func(c *api.Config) { add(c); delete(c.Contexts, "production") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "config")
			if test.before != none {
				write(t, path, test.before)
			}
			k, folder := writingKind{newFake(t), path}, t.TempDir()
			doc := document(t, "")
			_, err := open(t, k, folder).Create(t.Context(), doc, kindcluster.Options{Kubeconfig: path}, ui.Discard{})
			if err != nil {
				t.Fatal(err)
			}
			if test.meanwhile != nil {
				if err := k.change(test.meanwhile); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := open(t, k, folder).Delete(t.Context(), "dev", ui.Discard{}); err != nil {
				t.Fatal(err)
			}
			expectKubeconfig(t, path, test.want, none, test.meanwhile != nil, test.current)
		})
	}
}

// expectKubeconfig compares a kubeconfig with the wanted content, which is none for no file. If others
// have changed the file, it compares only the current context, and that their context is still there.
func expectKubeconfig(t *testing.T, path, want, none string, changed bool, current string) {
	t.Helper()
	text, err := os.ReadFile(path)
	got := string(text)
	if errors.Is(err, fs.ErrNotExist) {
		got, err = none, nil
	}
	if err != nil {
		t.Fatal(err)
	}
	if !changed {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the kubeconfig (-before +after):\n%s", diff)
		}
		return
	}
	now, err := clientcmd.Load(text)
	if err != nil {
		t.Fatal(err)
	}
	if now.CurrentContext != current || now.Contexts["new"] == nil || now.Contexts["kind-dev"] != nil {
		t.Errorf("want the current context %q and the context new:\n%s", current, text)
	}
}

// TestAFailedCreateRestoresTheKubeconfig makes kind fail after kind has written the kubeconfig.
func TestAFailedCreateRestoresTheKubeconfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	write(t, path, usersKubeconfig)
	k := failingKind{writingKind{newFake(t), path}}
	_, err := open(t, k, t.TempDir()).Create(t.Context(), document(t, ""), kindcluster.Options{Kubeconfig: path},
		ui.Discard{})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the failure of kind", err)
	}
	expectKubeconfig(t, path, usersKubeconfig, "", false, "")
}

// The kubeconfig keeps the mode that its owner chose.
func TestDeleteKeepsTheModeOfTheKubeconfig(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no modes")
	}
	path := filepath.Join(t.TempDir(), "config")
	write(t, path, usersKubeconfig)
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	k, folder := writingKind{newFake(t), path}, t.TempDir()
	doc := document(t, "")
	_, err := open(t, k, folder).Create(t.Context(), doc, kindcluster.Options{Kubeconfig: path}, ui.Discard{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o640); err != nil { // kind itself may narrow it
		t.Fatal(err)
	}
	if _, err := open(t, k, folder).Delete(t.Context(), "dev", ui.Discard{}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o640 {
		t.Errorf("the mode is %s", info.Mode())
	}
}

// A kubeconfig that kind cannot read is found before anything is made.
func TestAWrongKubeconfigIsFoundFirst(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	write(t, path, "clusters: {")
	k := writingKind{newFake(t), path}
	_, err := open(t, k, t.TempDir()).Create(t.Context(), document(t, ""), kindcluster.Options{Kubeconfig: path},
		ui.Discard{})
	if err == nil || !strings.Contains(err.Error(), "read the kubeconfig "+path) {
		t.Errorf("got %v", err)
	}
	expectKubeconfig(t, path, "clusters: {", "", false, "")
}

// A kubeconfig in UTF-16 is restored in UTF-16, also if others have changed it in the meantime.
func TestTheKubeconfigKeepsItsEncoding(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	wide := windowstext.Text{Encoding: windowstext.UTF16LE}
	write(t, path, string(wide.Encode(usersKubeconfig)))
	k, folder := writingKind{newFake(t), path}, t.TempDir()
	if _, err := open(t, k, folder).Create(t.Context(), document(t, ""), kindcluster.Options{Kubeconfig: path},
		ui.Discard{}); err != nil {
		t.Fatal(err)
	}
	changed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, string(wide.Encode(strings.Replace(string(changed), "namespace: shop", "namespace: store", 1))))
	if _, err := open(t, k, folder).Delete(t.Context(), "dev", ui.Discard{}); err != nil {
		t.Fatal(err)
	}
	restored, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text, err := windowstext.Decode(restored)
	if err != nil || text.Encoding != windowstext.UTF16LE || !strings.Contains(text.Content, "current-context: production") {
		t.Errorf("%s:\n%s\n%v", text.Encoding, text.Content, err)
	}
}

// failingKind is a Kind that fails after it has written the kubeconfig.
type failingKind struct{ writingKind }

func (k failingKind) Create(name string, options ...kind.CreateOption) error {
	return errors.Join(k.writingKind.Create(name, options...), context.DeadlineExceeded)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
