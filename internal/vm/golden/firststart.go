package golden

import (
	"context"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"path/filepath"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/config"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/vm"
	"github.com/swdt-dev/swdt/internal/vm/answer"
	"github.com/swdt-dev/swdt/internal/vm/configcd"
)

var _ vm.Images = (*Images)(nil)

// Find returns the golden image of a node file. If the image does not exist yet, Exists is false.
func (s *Images) Find(ctx context.Context, document config.Document, r ui.Reporter) (vm.Golden, error) {
	c, err := s.recipeOf(ctx, document, r)
	if err != nil {
		return vm.Golden{}, err
	}
	defer c.close()
	made, err := s.get(c.key)
	if errors.Is(err, ErrUnknown) {
		return vm.Golden{Image: vm.Image{Key: c.key}, WriteCD: c.writeFirstCD}, nil
	}
	if err != nil {
		return vm.Golden{}, err
	}
	return s.golden(c, made), nil
}

// Use returns the golden image of a node file, and builds the image if it is missing. Use holds the
// image's lock until the caller calls release, the second result.
func (s *Images) Use(ctx context.Context, document config.Document, r ui.Reporter) (vm.Golden, func(), error) {
	c, err := s.recipeOf(ctx, document, r)
	if err != nil {
		return vm.Golden{}, nil, err
	}
	defer c.close()
	held, err := s.lock(ctx, c.key, lockLimit, r)
	if err != nil {
		return vm.Golden{}, nil, err
	}
	report, err := s.ensure(ctx, c, r)
	made := Manifest{}
	if err == nil {
		made, err = s.get(c.key)
	}
	if err != nil {
		_ = held.Close()
		return vm.Golden{}, nil, err
	}
	if report.Result == changed {
		r.Info("%s", report.Message)
	}
	account := document.Node.Spec.Credentials.Username
	if name := answer.Administrator(c.content.Language); account != "" && !strings.EqualFold(account, name) {
		r.Warn("spec.credentials.username is %s, but the only account of the new Windows is %s", account, name)
	}
	return s.golden(c, made), func() { _ = held.Close() }, nil
}

func (s *Images) golden(c *recipe, m Manifest) vm.Golden {
	image := vm.Image{Key: m.Key, Base: filepath.Join(s.folder(m.Key), m.Files.Disk)}
	if m.Files.Vars != "" {
		image.Vars = filepath.Join(s.folder(m.Key), m.Files.Vars)
	}
	return vm.Golden{Image: image, Exists: true, WriteCD: c.writeFirstCD}
}

// writeFirstCD writes the CD for the first start of a VM of the image. The recipe's files may be
// closed already.
func (c *recipe) writeFirstCD(path string, password answer.Password, seal *rsa.PublicKey, keys []string) error {
	answers := c.answers(computerName(c.machine.Name))
	answers.Password = password
	return configcd.Write(path, configcd.Options{Answer: answers, FirstStart: true, Keys: keys, Seal: seal, Time: time.Now()})
}

const (
	maxComputerName = 15
	// hashLength is the number of hexadecimal digits that keep shortened names different.
	hashLength = 5
)

// computerName returns the NetBIOS name of a VM: the VM's name if that is valid, or else the
// beginning of the VM's name with a hash, so that VMs have different NetBIOS names.
func computerName(name string) string {
	if answer.CheckComputerName(name) == nil {
		return name
	}
	letters := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
			return r
		}
		return '-'
	}, name)
	sum := sha256.Sum256([]byte(name))
	letters = strings.Trim(letters[:min(len(letters), maxComputerName-hashLength-1)], "-")
	if letters == "" {
		letters = "vm"
	}
	return letters + "-" + hex.EncodeToString(sum[:])[:hashLength]
}
