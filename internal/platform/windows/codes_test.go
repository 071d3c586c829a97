package windows

import (
	"errors"
	"testing"

	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// Codes that others have met, with their sources.
func TestCodesOfOthers(t *testing.T) {
	for code, want := range map[uint32]error{
		225:        fault.ErrBlocked,  // wazuh/wazuh#9251: CreateFile of a file that Defender has found
		226:        fault.ErrBlocked,  // winerror.h: the file was removed
		1260:       fault.ErrBlocked,  // jcaillon/3P#2: "This program is blocked by group policy"
		4551:       fault.ErrBlocked,  // MaaEnd/MaaEnd#1661: "os error 4551"; gist.github.com/wdormann: StartService
		4556:       fault.ErrBlocked,  // winerror.h: "An Application Control policy has blocked this file. Malicious …"
		0xC0370110: fault.ErrNotExist, // microsoft/hcsshim#866
		0xC037010E: fault.ErrNotExist, // hcsshim's internal/hcs/errors.go
		0x803B0008: fault.ErrNotExist, // HCN error codes: HCN_E_POLICY_NOT_FOUND
		1053:       fault.ErrStartFailed,
		1115:       fault.ErrShuttingDown, // [MS-SCMR], RStartServiceW: the system is shutting down
		0:          nil,
	} {
		if got := kindOf(code); !errors.Is(got, want) {
			t.Errorf("code %#x is %v, want %v", code, got, want)
		}
	}
}

func TestACodeHasOneMeaning(t *testing.T) {
	seen := map[uint32]error{}
	for _, m := range meanings() {
		for _, code := range m.codes {
			if seen[code] != nil {
				t.Errorf("code %#x means %v and %v", code, seen[code], m.kind)
			}
			seen[code] = m.kind
		}
	}
}

// A start that fails since the executable is missing is no missing service, and a blocked one keeps its own meaning.
func TestCodesAboutAnExecutable(t *testing.T) {
	for code, want := range map[uint32]bool{2: true, 3: true, 5: true, 193: true, 1060: false, 225: false, 4551: false} {
		if isAboutExecutable(code) != want {
			t.Errorf("code %d is about the executable: %v, want %v", code, !want, want)
		}
	}
}
