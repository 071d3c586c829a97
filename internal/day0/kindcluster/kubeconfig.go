package kindcluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/swdt-dev/swdt/internal/format/windowstext"
	"github.com/swdt-dev/swdt/internal/localfile"
)

// earlierFile is the kubeconfig before kind added a cluster to it. kind writes the whole file anew, without
// comments, and it does not restore the current context when it removes the cluster.
type earlierFile struct {
	Path    string `json:"path"`    // absolute; the target, if the kubeconfig is a symbolic link
	Exists  bool   `json:"exists"`  // the file existed
	Content []byte `json:"content"` // has the user's secrets, as the file does
}

// readEarlier reads the kubeconfig to which kind will add a cluster; explicit is its path, or "" for
// kubectl's default, which kind finds by the same rules.
func readEarlier(explicit string) (*earlierFile, error) {
	rules := clientcmd.NewDefaultPathOptions()
	rules.LoadingRules.ExplicitPath = explicit
	path, err := filepath.Abs(rules.GetDefaultFilename())
	if err != nil {
		return nil, fmt.Errorf("find the kubeconfig: %w", err)
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &earlierFile{Path: path}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	if _, err := clientcmd.Load(content); err != nil { // kind could not add a cluster to it
		return nil, fmt.Errorf("read the kubeconfig %s: %w", path, windowstext.ExplainYAML(content, "kubectl", err))
	}
	return &earlierFile{Path: path, Exists: true, Content: content}, nil
}

// restore makes the kubeconfig as it was, after kind has removed its cluster. If the file has changed
// meanwhile, restore keeps the changes, and makes the earlier context current again if none is.
func (e *earlierFile) restore() error {
	if e == nil { // an older swdt made the cluster
		return nil
	}
	text, err := os.ReadFile(e.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the user has removed the file
	}
	if err != nil {
		return fmt.Errorf("restore the kubeconfig: %w", err)
	}
	before, err := clientcmd.Load(e.Content)
	if err != nil {
		return fmt.Errorf("restore %s: read the earlier content: %w", e.Path, err)
	}
	now, err := clientcmd.Load(text)
	if err != nil {
		return fmt.Errorf("restore %s: %w", e.Path, err)
	}
	lacksContext := now.CurrentContext == "" && now.Contexts[before.CurrentContext] != nil
	if lacksContext {
		now.CurrentContext = before.CurrentContext
	}
	same := equality.Semantic.DeepEqual(before, now)
	switch {
	case same && !e.Exists:
		err = os.Remove(e.Path)
	case same:
		err = replace(e.Path, e.Content)
	case lacksContext:
		err = e.chooseContext(text, before.CurrentContext)
	}
	if err != nil {
		return fmt.Errorf("restore the kubeconfig: %w", err)
	}
	return nil
}

// replace replaces a file's content at once, so that an interruption loses nothing, and keeps the file's mode.
func replace(path string, content []byte) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if err := localfile.Replace(path, content); err != nil {
		return err
	}
	return os.Chmod(path, info.Mode().Perm())
}

// chooseContext sets the current context in the kubeconfig, whose content is now file. The kubeconfig gets the earlier
// encoding, since kind writes UTF-8.
func (e *earlierFile) chooseContext(file []byte, name string) error {
	path := e.Path
	earlier, err := windowstext.Decode(e.Content)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	var document yaml.Node
	if err := yaml.Unmarshal(file, &document); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	const key = "current-context"
	fields := document.Content[0] // a mapping: the text has contexts
	for i := 0; i+1 < len(fields.Content); i += 2 {
		if fields.Content[i].Value == key {
			fields.Content = slices.Delete(fields.Content, i, i+2)
			break
		}
	}
	fields.Content = append(fields.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, &yaml.Node{
		Kind: yaml.ScalarNode, Tag: "!!str", Value: name,
	})
	changed, err := yaml.Marshal(&document)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return replace(path, earlier.Encode(string(changed)))
}
