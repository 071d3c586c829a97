package diag

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/ui"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// registryKeys returns the registry keys whose values are stored. The second field of a key, levels,
// is the number of levels of subkeys whose values are stored too. To add a key, add an entry.
func registryKeys() []registryKey {
	const services, windows = `HKLM\SYSTEM\CurrentControlSet\Services\`,
		`HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion`
	return []registryKey{
		{windows, 0},
		{`HKLM\SYSTEM\CurrentControlSet\Control\Session Manager\Environment`, 0},
		{`HKLM\SYSTEM\CurrentControlSet\Control\Session Manager`, 0},
		{`HKLM\SOFTWARE\Microsoft\Windows\CurrentVersion\Component Based Servicing`, 0},
		{`HKLM\SYSTEM\CurrentControlSet\Policies\Microsoft\FeatureManagement\Overrides`, 0},
		{`HKLM\SYSTEM\CurrentControlSet\Control\Terminal Server`, 0},
		{`HKLM\SOFTWARE\OpenSSH`, 0},
		{services + `hns\State`, 0},
		{services + `Tcpip\Parameters`, 0},
		{services + `kubelet`, 1},
		{services + `containerd`, 1},
		{services + `kube-proxy`, 1},
		{services + `docker`, 1},
		{services + `csi-proxy`, 1},
		{services + `CalicoNode`, 1},
		{services + `CalicoFelix`, 1},
		{services + `antrea-agent`, 1},
		{services + `flanneld`, 1},
	}
}

type registryKey struct {
	path   string
	levels int
}

type registryRow struct {
	Key   string `json:"key"`
	Name  string `json:"name"`
	Type  string `json:"type"`
	Value string `json:"value"`
}

func registry(ctx context.Context, t *Task) error {
	var rows []registryRow
	var failed []error
	for _, key := range registryKeys() {
		below, err := t.registryValues(ctx, key)
		rows, failed = append(rows, below...), append(failed, err)
	}
	err := t.Table("registry", rows, func(w io.Writer) error {
		var lines [][]string
		for _, r := range rows {
			lines = append(lines, []string{r.Key, r.Name, r.Type, oneLine(r.Value)})
		}
		return ui.Table(w, []string{"KEY", "NAME", "TYPE", "VALUE"}, lines)
	})
	return errors.Join(append(failed, err)...)
}

// registryValues returns the values that could be read, and the errors of the keys that could not
// be read. A key that does not exist, or to which access is denied, has no values and causes no
// error.
func (t *Task) registryValues(ctx context.Context, key registryKey) ([]registryRow, error) {
	reply, err := t.Node.Registry.List(ctx, &agentv1.RegistryListRequest{Key: key.path})
	if errors.Is(err, fault.ErrNotExist) || errors.Is(err, fault.ErrPermission) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key.path, err)
	}
	var rows []registryRow
	for _, v := range reply.GetValues() {
		rows = append(rows, registryRow{Key: key.path, Name: v.GetName(), Type: v.GetType(), Value: spelled(v)})
	}
	if key.levels == 0 {
		return rows, nil
	}
	var failed []error
	for _, name := range reply.GetKeys() {
		below, err := t.registryValues(ctx, registryKey{key.path + `\` + name, key.levels - 1})
		rows, failed = append(rows, below...), append(failed, err)
	}
	return rows, errors.Join(failed...)
}

// spelled returns a value as readable text.
func spelled(v *agentv1.RegistryValue) string {
	switch platform.RegistryType(v.GetType()) {
	case platform.RegistryString, platform.RegistryExpandString:
		return v.GetString_()
	case platform.RegistryMultiString:
		return strings.Join(v.GetStrings(), "\n")
	case platform.RegistryDWord, platform.RegistryQWord:
		return strconv.FormatUint(v.GetInteger(), 10)
	}
	const most = 64
	data := v.GetBinary()
	if len(data) > most {
		return fmt.Sprintf("%x… (%d bytes)", data[:most], len(data))
	}
	return fmt.Sprintf("%x", data)
}
