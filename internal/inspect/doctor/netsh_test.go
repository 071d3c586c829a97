package doctor

import (
	"slices"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/join/preflight"
)

// The texts are from Windows in several languages: netsh.exe prints in the machine's
// language, which swdt cannot change.

const (
	excludedEnglish = `
Protocol tcp Port Exclusion Ranges

Start Port    End Port
----------    --------
        80          80
      5357        5357
     10180       10279
     50000       50059     *

* - Administered port exclusions.

`
	excludedChinese = `
协议 tcp 端口排除范围

开始端口    结束端口
----------    --------
        80          80
      5357        5357
     10180       10279
     50000       50059     *

* - 管理的端口排除。

`
	excludedSpanish = `
Puerto de inicio    Puerto final
----------          --------
        80          80
      5357        5357
     10180       10279
     50000       50059     *
`
	noneExcluded = `
Protocol tcp Port Exclusion Ranges

Start Port    End Port
----------    --------

* - Administered port exclusions.

`
)

func TestExcludedPortsOfAnyLanguage(t *testing.T) {
	want := []PortRange{{First: 80, Last: 80}, {First: 5357, Last: 5357}, {First: 10180, Last: 10279},
		{First: 50000, Last: 50059, Administered: true}}
	for _, text := range []string{excludedEnglish, excludedChinese, excludedSpanish,
		strings.ReplaceAll(excludedChinese, "\n", "\r\n")} {
		if got, err := excludedPorts(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%v, %v of\n%s", got, err, text)
		}
	}
	if got, err := excludedPorts(noneExcluded); err != nil || len(got) != 0 {
		t.Errorf("%v, %v where none is excluded", got, err)
	}
	for _, text := range []string{"", "The following command was not found: int ipv4 show excludedportrange.\r\n",
		"fixme:netsh:wmain stub: int\n"} {
		if got, err := excludedPorts(text); err == nil {
			t.Errorf("%v of %q, which tells nothing", got, text)
		}
	}
}

func TestDynamicPortsOfAnyLanguage(t *testing.T) {
	for _, text := range []string{
		"\r\nProtocol tcp Dynamic Port Range\r\n---------------------------------\r\nStart Port      : " +
			"34000\r\nNumber of Ports : 31536\r\n\r\n",
		"\r\nプロトコル tcp の動的ポートの範囲\r\n---------------------------------\r\n開始ポート      : 34000\r\nポート数        : " +
			"31536\r\n\r\n",
		"\r\n协议 tcp 动态端口范围\r\n---------------------------------\r\n启动端口        : 34000\r\n端口数          : 31536\r\n\r\n",
	} {
		switch first, count, err := preflight.DynamicPorts(text); {
		case err != nil:
			t.Errorf("unexpected error: %v", err)
		case first != 34000:
			t.Errorf("first = %v, want 34000", first)
		case count != 31536:
			t.Errorf("count = %v, want 31536; %d, %d, %v of\n%s", count, first, count, err, text)
		}
	}
	for _, text := range []string{"", "Start Port : 34000\n", "A : 1\nB : 2\nC : 3\n",
		"Start Port : 340000\nNumber of Ports : 1\n", "Start Port : -1\nNumber of Ports : 1\n"} {
		if first, count, err := preflight.DynamicPorts(text); err == nil {
			t.Errorf("%d, %d of %q", first, count, text)
		}
	}
}

func TestAdaptersOfAnyLanguage(t *testing.T) {
	for _, text := range []string{`
   MTU  MediaSenseState   Bytes In  Bytes Out  Interface
------  ---------------  ---------  ---------  -------------
4294967295                1          0     529702  Loopback Pseudo-Interface 1
  1500                1  2678641808  213293706  以太网
  1400                5          0          0  本地连接* 1
  1450                1       2106     509236  vEthernet (以太网)
`, `
   MTU  MediaSenseState   传入字节  传出字节      接口
------  ---------------  ---------  ---------  -------------
  1500                1  956363711  334417521  以太网
4294967295                1          0    1176112  Loopback Pseudo-Interface 1
  1400                5          0          0  本地连接* 1
  1450                1    1008699  135703769  vEthernet (以太网)
`, `
       MTU  MediaSenseState      Bytes In     Bytes Out  Interface
----------  ---------------  ------------  ------------  -------------
4294967295                1             0         69231  Loopback Pseudo-Interface 1
      1500                1    4309730893    4402268540  以太网
      1400                5             0             0  Ethernet 2
      1450                1    1008699  135703769  vEthernet (以太网)
`} {
		want := []Interface{{Name: "以太网", MTU: 1500}, {Name: "vEthernet (以太网)", MTU: 1450}}
		if got := subinterfaces(text); !slices.Equal(got, want) {
			t.Errorf("%v of\n%s", got, text)
		}
	}
	if got := subinterfaces("The following command was not found.\r\nMTU is 1500 for each of them\r\n"); len(got) != 0 {
		t.Errorf("%v of a complaint", got)
	}
}
