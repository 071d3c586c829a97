package answer_test

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/swdt-dev/swdt/internal/vm/answer"
)

// decoded returns the password in a Value of an answer file, without the element's name.
func decoded(t *testing.T, value, element string) string {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(value)
	if err != nil || len(raw)%2 != 0 {
		t.Fatalf("%q: %v", value, err)
	}
	units := make([]uint16, len(raw)/2)
	for n := range units {
		units[n] = binary.LittleEndian.Uint16(raw[2*n:])
	}
	text, ok := strings.CutSuffix(string(utf16.Decode(units)), element)
	if !ok {
		t.Errorf("%q does not end in %s", string(utf16.Decode(units)), element)
	}
	return text
}

func TestPasswordsComeBack(t *testing.T) {
	for _, text := range []string{password, `<&>"' Ää1`, "пароль-Пароль-1", "\U0001f600Smile-7"} {
		for _, release := range answer.Releases() {
			o := options(release, false)
			o.Password = answer.NewPassword(text)
			file, err := answer.Setup(o)
			if err != nil {
				t.Fatal(err)
			}
			count := 0
			for _, s := range settings(t, file) {
				if !strings.HasSuffix(s.path, "Password/Value") {
					continue
				}
				count++
				if got := decoded(t, s.value, s.in); got != text {
					t.Errorf("%s: %s holds %q, not %q", release, s.path, got, text)
				}
			}
			if count < 2 {
				t.Errorf("%s: %d passwords", release, count)
			}
		}
	}
	// Known values: those of an element that is called Password, and of AdministratorPassword.
	file := files(t)["2022-core"]
	for path, want := range map[string]string{
		"AutoLogon/Password/Value":                 "Correct-Horse+7Password",
		"UserAccounts/AdministratorPassword/Value": "Correct-Horse+7AdministratorPassword",
	} {
		if got := values(settings(t, file), path); len(got) != 1 || decoded(t, got[0], "") != want {
			t.Errorf("%s: %q", path, got)
		}
	}
}

func TestGeneratedPasswords(t *testing.T) {
	seen := map[string]bool{}
	for range 200 {
		p := answer.GeneratePassword()
		o := options(answer.Server2025, true)
		o.Password = p
		if _, err := answer.Setup(o); err != nil {
			t.Fatal(err)
		}
		text := p.Reveal()
		if len(text) != 24 || seen[text] {
			t.Errorf("a generated password has %d characters, or is not the first of its kind", len(text))
		}
		seen[text] = true
		for _, class := range []string{"ABCDEFGHJKLMNPQRSTUVWXYZ", "abcdefghijkmnpqrstuvwxyz", "23456789", "-_.:+="} {
			if !strings.ContainsAny(text, class) {
				t.Errorf("a generated password has none of %s", class)
			}
		}
	}
}

func TestNothingPrintsThePassword(t *testing.T) {
	o := options(answer.Server2022, true)
	inner := struct{ o answer.Options }{o} // fmt calls no methods of unexported fields
	var out strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&out, verb+verb+verb+verb, o, &o, o.Password, inner)
	}
	encoded, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	out.Write(encoded)
	for _, handler := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(handler).Info("options", "o", o, "password", o.Password)
	}
	fmt.Fprint(&out, fmt.Errorf("%v: %w", o.Password, os.ErrExist))
	for _, part := range []string{"Correct", "Horse", fmt.Sprintf("%x", "Correct")} {
		if strings.Contains(out.String(), part) {
			t.Errorf("the password is in %s", out.String())
		}
	}
}
