package v1alpha1

import (
	"fmt"
	"strings"
)

// UpdatePolicyKey is the key of the policy of Windows Update, which automaticUpdates sets.
const UpdatePolicyKey = `HKLM\SOFTWARE\Policies\Microsoft\Windows\WindowsUpdate\AU`

func validateRegistry(p *problems, field string, s Setup) {
	seen := newSeen(p)
	for i, value := range s.Registry {
		validateRegistryKey(p, at(field, i, "key"), value.Key)
		name := at(field, i, "name")
		switch {
		case !p.required(name, value.Name, "name the value"):
		case hasControl(value.Name) || len(value.Name) > 255:
			p.add(name, fmt.Sprintf("%.60q is not the name of a value", value.Name), "remove control characters, and use at most 255 characters")
		case s.AutomaticUpdates != nil && strings.EqualFold(strings.TrimRight(value.Key, `\`), UpdatePolicyKey):
			p.add(name, "belongs to automaticUpdates, which is set too", "keep one of them")
		default:
			seen.add(name, value.Key+`\`+value.Name)
		}
		switch {
		case value.DWord == nil && value.String == nil:
			p.add(at(field, i, ""), "has neither dword nor string", "set one of them")
		case value.DWord != nil && value.String != nil:
			p.add(at(field, i, "string"), "is set beside dword", "keep one of them")
		case value.String != nil && strings.Contains(*value.String, "\x00"):
			p.add(at(field, i, "string"), "has a null character", "remove it")
		}
	}
}

func validateRegistryKey(p *problems, field, key string) {
	const form = `write it such as HKLM\SYSTEM\CurrentControlSet\Services\hns\State`
	if !p.required(field, key, form) {
		return
	}
	parts := strings.Split(key, `\`)
	if !strings.EqualFold(parts[0], "HKLM") || len(parts) < 3 || hasControl(key) || strings.Contains(key, `\\`) || parts[len(parts)-1] == "" {
		p.add(field, fmt.Sprintf("%.80q is not a key below HKLM", key), form)
	}
}

// validateExclusions accepts paths and file names, also with %VARIABLES% and wildcards, as Add-MpPreference does.
func validateExclusions(p *problems, field string, exclusions []string) {
	seen := newSeen(p)
	for i, exclusion := range exclusions {
		entry := at(field, i, "")
		switch {
		case exclusion == "":
			p.add(entry, "is empty", `write a path, such as C:\ProgramData\containerd`)
		case hasControl(exclusion) || strings.ContainsAny(exclusion, `"<>|`):
			p.add(entry, fmt.Sprintf("%.80q is not a path", exclusion), `write it such as C:\ProgramData\containerd`)
		default:
			seen.add(entry, exclusion)
		}
	}
}
