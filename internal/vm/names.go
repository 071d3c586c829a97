package vm

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxName is the longest name of a VM in bytes.
const maxName = 253

// CheckName returns an error if a VM cannot have the name. A name may have any printable
// characters, and spaces between them.
func CheckName(name string) error {
	odd := func(r rune) bool { return !unicode.IsPrint(r) }
	switch {
	case name == "" || strings.TrimSpace(name) != name:
		return fmt.Errorf("%.60q is not a name for a VM; write one that neither is empty nor has spaces around it", name)
	case len(name) > maxName:
		return fmt.Errorf("%.60q… is too long for the name of a VM; use at most %d bytes", name, maxName)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, odd):
		return fmt.Errorf("%.60q has characters that cannot be printed; name the VM without them", name)
	}
	return nil
}

// isPlain reports whether a name can be the name of a folder on every system. Such a name has at
// most 48 small letters, digits, dots, underscores and hyphens. So it has no capitals, which some
// file systems do not distinguish from small letters. It does not end with a dot, which Windows
// removes, and is not the name of a Windows device.
func isPlain(name string) bool {
	plain := regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]{0,46}[a-z0-9_-])?$`)
	device := regexp.MustCompile(`^(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?$`)
	return plain.MatchString(name) && !device.MatchString(name)
}

// folderName returns the name of the folder of a VM. Different names have different folders, no
// folder's name begins with a dot, and none has a separator. For a name that is not plain, the
// folder's name ends with a ~, which no plain name has, and a hash.
func folderName(name string) string {
	if isPlain(name) {
		return name
	}
	letters := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
			return r
		case 'A' <= r && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, name)
	letters = strings.Trim(letters[:min(len(letters), 32)], "-")
	hash := sha256.Sum256([]byte(name))
	return "vm-" + letters + "~" + hex.EncodeToString(hash[:8])
}
