package trace

import (
	"reflect"
	"strings"
	"testing"

	"weir/pool/placement"
)

const podHeader = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"

func TestReadPods(t *testing.T) {
	for name, text := range map[string]string{
		"plain":           podHeader + "a,1000,20,1,460,T4|G2\n",
		"another order":   "gpu_spec,gpu_milli,num_gpu,memory_mib,cpu_milli,extra,name\n G2 |T4|T4,460, 1,20,1000,x,a\n",
		"Windows":         "\ufeff" + strings.ReplaceAll(podHeader+"a,1000,20,1,460,T4|G2\n", "\n", "\r\n"),
		"no last newline": podHeader + "a,1000,20,1,460,|T4|G2|",
	} {
		pods, err := ReadPods(strings.NewReader(text), "f")
		want := []Pod{{"a", placement.Demand{CPUMilli: 1000, HostMemoryMiB: 20, GPUs: 1, Cores: 46, Model: "G2|T4"}}}
		if err != nil || !reflect.DeepEqual(pods, want) {
			t.Errorf("%s: %+v, %v", name, pods, err)
		}
	}
	short := "name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1,2,0,0\n"
	if pods, err := ReadPods(strings.NewReader(short), "f"); err != nil || pods[0].Model != "" {
		t.Errorf("without gpu_spec: %+v, %v", pods, err)
	}
}

func TestReadNodes(t *testing.T) {
	nodes, err := ReadNodes(strings.NewReader("sn,cpu_milli,memory_mib,gpu,model\nn1,64000,262144,2,P100\n"), "f")
	gpu := placement.Device{ID: 1, Model: "P100", Mixed: true, Healthy: true}
	second := gpu
	second.ID, second.Index = 2, 1
	want := []placement.Node{{ID: 1, Accepting: true, CPUMilli: 64000, MemoryMiB: 262144, Devices: []placement.Device{gpu, second}}}
	if err != nil || !reflect.DeepEqual(nodes, want) {
		t.Errorf("%+v, %v", nodes, err)
	}
}

func TestReadErrors(t *testing.T) {
	for _, c := range []struct{ text, says string }{
		{"", "f: the file is empty"},
		{"name,cpu_milli\n", "f:1: there is no column memory_mib, num_gpu, gpu_milli"},
		{podHeader, "f:1: nothing follows the header"},
		{strings.Replace(podHeader, "gpu_spec", "name", 1), `f:1: column "name" stands twice`},
		{podHeader + "a,1,1,0,0,\nb,-1,1,0,0,\n", "f:3: cpu_milli: -1 is negative"},
		{podHeader + "a,1,1,0,x,\n", `f:2: gpu_milli: "x" is not a whole number`},
		{podHeader + "a,1,1.5,0,0,\n", `f:2: memory_mib: "1.5" is not a whole number`},
		{podHeader + "a,,1,0,0,\n", `f:2: cpu_milli: "" is not a whole number`},
		{podHeader + "a,99999999999999999999,1,0,0,\n", "f:2: cpu_milli: 99999999999999999999 is not in 0..1099511627776"},
		{podHeader + "a,9999999999999999,1,0,0,\n", "f:2: cpu_milli: 9999999999999999 is not in 0..1099511627776"},
		{podHeader + "a,1,1,1,0,\n", "f:2: 1 GPUs with 0 milli each"},
		{podHeader + "a,1,1,1,1001,\n", "f:2: gpu_milli: 1001 is not in 0..1000"},
		{podHeader + "a,1,1,99999,1000,\n", "f:2: num_gpu: 99999 is not in 0..1024"},
		{podHeader + "a,1\n", "f:2: wrong number of fields"},
		{podHeader + "\"a,1,1,0,0,\n", "f:2: extraneous or missing"},
	} {
		if _, err := ReadPods(strings.NewReader(c.text), "f"); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %v, not %s", c.text, err, c.says)
		}
	}
	if _, err := ReadNodes(strings.NewReader("cpu_milli,memory_mib,gpu,model\n1,1,1,a|b\n"), "f"); err == nil {
		t.Error("a model with |")
	}
}

func FuzzRead(f *testing.F) {
	f.Add(podHeader + "a,1000,20,1,460,T4|G2\n")
	f.Add("cpu_milli,memory_mib,gpu,model\n1,1,1,a\n")
	f.Add("\ufeff\"name\",cpu_milli\n,,,\n")
	f.Fuzz(func(t *testing.T, text string) {
		if pods, err := ReadPods(strings.NewReader(text), "f"); err == nil {
			e := placement.New(nil, placement.Policy{})
			for _, pod := range pods {
				if _, placed := e.Find(pod.Demand); placed != (pod.Demand == placement.Demand{}) || pod.GPUs > 0 && (pod.Cores < 1 || pod.Cores > placement.Whole) {
					t.Fatalf("%+v", pod)
				}
			}
		}
		if nodes, err := ReadNodes(strings.NewReader(text), "f"); err == nil {
			for _, n := range nodes {
				if n.CPUMilli < 0 || n.CPUMilli > maxAmount || n.MemoryMiB < 0 || n.MemoryMiB > maxAmount || len(n.Devices) > maxGPUs {
					t.Fatalf("%+v", n)
				}
			}
		}
	})
}
