package windowstext_test

import (
	"testing"

	"github.com/swdt-dev/swdt/internal/format/windowstext"
)

// The messages are those of Windows in these languages, in the code page of the language's console or, for 1252, of a
// program that prints in the language's ANSI code page.
func TestConsoleReadsTheCodePagesOfConsoles(t *testing.T) {
	tests := []struct{ name, printed, want string }{
		{"ASCII", "Access is denied.\r\n", "Access is denied.\r\n"},
		{"UTF-8", "Zugriff verweigert: äöü\r\n", "Zugriff verweigert: äöü\r\n"},
		{"UTF-8, cut in front", "\xa4rger über Ärger", "rger über Ärger"},
		{"UTF-8, cut behind", "Ärger\xc3", "Ärger"},
		{"850, German", "Das System kann den angegebenen Pfad nicht finden. Schlie\xe1en, \x84ndern, l\x94schen, f\x81r",
			"Das System kann den angegebenen Pfad nicht finden. Schließen, ändern, löschen, für"},
		{"850, French", "L'acc\x8as est refus\x82.", "L'accès est refusé."},
		{"850, Spanish", "El sistema no puede encontrar la ruta. Operaci\xa2n bloqueada por el administrador. \xadA\xa4o!",
			"El sistema no puede encontrar la ruta. Operación bloqueada por el administrador. ¡Año!"},
		{"1252, German", "Zugriff f\xfcr Gr\xf6\xdfe", "Zugriff für Größe"},
		{"1252, French", "Acc\xe8s refus\xe9", "Accès refusé"},
		{"1252, French, at the end", "voil\xe0", "voilà"},
		{"866, Russian", "\x8e\xe2\xaa\xa0\xa7\xa0\xad\xae \xa2 \xa4\xae\xe1\xe2\xe3\xaf\xa5.", "Отказано в доступе."},
		{"936, Chinese", "\xbe\xdc\xbe\xf8\xb7\xc3\xce\xca\xa1\xa3", `\xBE\xDC\xBE\xF8\xB7\xC3\xCE\xCA\xA1\xA3`},
		{"nothing", "", ""},
	}
	for _, test := range tests {
		if got := windowstext.Console([]byte(test.printed)); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
