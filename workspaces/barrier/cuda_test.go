package barrier

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// relay writes kernels that compute what their barriers order: before a warp uses a
// barrier, it stores its sum, and after it has waited, it adds those of all who use the
// barrier. Some warps sleep first. The result follows if no warp is released too soon and
// none waits for another barrier.
type relay struct {
	generator
	phases int
	sums   [][]uint32 // by warp and lane, what the kernel computes
}

// stored is what a lane stores in a phase.
func stored(sum uint32, phase int) uint32 { return sum*5 + uint32(phase) }

// pass lets some warps use a barrier.
func (k *relay) pass(name string) {
	members := k.members[name]
	if members == nil {
		members = k.Perm(k.warps)[:2+k.IntN(k.warps-1)]
		k.members[name] = members
	}
	waiting := 1 + k.IntN(len(members))
	offset := func(warp int) int { return 4 * warpSize * (k.phases*k.warps + warp) }
	slots := make([][]uint32, k.warps)
	for _, w := range members {
		for _, sum := range k.sums[w] {
			slots[w] = append(slots[w], stored(sum, k.phases))
		}
	}
	for i, w := range members {
		code := &k.code[w]
		if k.IntN(3) == 0 {
			fmt.Fprintf(code, "\tnanosleep.u32 %d;\n", 1+k.IntN(4000))
		}
		fmt.Fprintf(code, "\tmad.lo.u32 %%r5, %%r3, 5, %d;\n\tst.shared.u32 [%%r4+%d], %%r5;\n\tmembar.cta;\n", k.phases, offset(w))
		word := "arrive"
		if i < waiting {
			word = "sync"
		}
		fmt.Fprintf(code, "\tbarrier.%s %s, %d;\n", word, name, warpSize*len(members))
		if i >= waiting {
			continue
		}
		for _, m := range members {
			fmt.Fprintf(code, "\tld.shared.u32 %%r5, [%%r4+%d];\n\tadd.u32 %%r3, %%r3, %%r5;\n", offset(m))
			for lane := range k.sums[w] {
				k.sums[w][lane] += slots[m][lane]
			}
		}
	}
	k.phases++
}

// kernel writes a kernel of 2 to 8 warps, cut by strong barriers.
func (k *relay) kernel(name string) string {
	k.warps, k.members = 2+k.IntN(7), map[string][]int{}
	k.code, k.sums = make([]strings.Builder, k.warps), make([][]uint32, k.warps)
	for w := range k.sums {
		for lane := range warpSize {
			k.sums[w] = append(k.sums[w], uint32(w*warpSize+lane))
		}
	}
	var body strings.Builder
	var known, earlier []string // a warp that only arrives does not know when it can use the barrier again
	for region := range 1 + k.IntN(4) {
		if region > 0 {
			fmt.Fprintf(&body, "\tbar.sync %d;\n", 50+k.IntN(2))
		}
		earlier = slices.Compact(slices.Sorted(slices.Values(known)))
		for range 1 + k.IntN(10) {
			barrier := k.name(earlier)
			earlier = slices.DeleteFunc(earlier, func(name string) bool { return name == barrier })
			known = append(known, barrier)
			k.pass(barrier)
		}
		for w := range k.warps {
			fmt.Fprintf(&body, "\t@!%%w%d bra NEXT%d_%d;\n%s\tbra.uni JOIN%d;\nNEXT%d_%d:\n", w, region, w, k.code[w].String(), region, region, w)
			k.code[w].Reset()
		}
		fmt.Fprintf(&body, "JOIN%d:\n", region)
	}
	var out strings.Builder
	fmt.Fprintf(&out, ".visible .entry %s(.param .u64 out)\n.reqntid %d\n{\n", name, k.warps*warpSize)
	fmt.Fprintf(&out, "\t.reg .pred %%w<%d>;\n\t.reg .b32 %%r<8>;\n\t.reg .b64 %%rd<4>;\n\t.shared .align 4 .b8 slots[%d];\n",
		k.warps, 4*warpSize*k.warps*k.phases)
	out.WriteString("\tmov.u32 %r0, %tid.x;\n\tshr.u32 %r1, %r0, 5;\n\tand.b32 %r2, %r0, 31;\n" +
		"\tmov.u32 %r3, %r0;\n\tmov.u32 %r4, slots;\n\tmad.lo.u32 %r4, %r2, 4, %r4;\n")
	for w := range k.warps {
		fmt.Fprintf(&out, "\tsetp.eq.u32 %%w%d, %%r1, %d;\n", w, w)
	}
	out.WriteString(body.String())
	out.WriteString("\tmov.u32 %r6, %ctaid.x;\n\tmov.u32 %r7, %ntid.x;\n\tmad.lo.u32 %r6, %r6, %r7, %r0;\n" +
		"\tld.param.u64 %rd1, [out];\n\tmul.wide.u32 %rd2, %r6, 4;\n\tadd.u64 %rd3, %rd1, %rd2;\n\tst.global.u32 [%rd3], %r3;\n\tret;\n}\n")
	return out.String()
}

var barrierLines = regexp.MustCompile(`(?m)^\tbar(rier)?\..*\n`)

// On a machine with CUDA, ptxas accepts what was rewritten, and each block of a kernel
// computes on the GPU what it should. Without barriers, the same kernels compute something
// else, so the comparison notices a wrong order.
func TestKernelsOnGPU(t *testing.T) {
	const header = ".version 7.8\n.target sm_80\n.address_size 64\n\n"
	rewritten, without := header, header
	want, threads, most, checked := map[string]string{}, []string{}, 0, 0
	for seed := range uint64(200) {
		k := &relay{generator: generator{Rand: rand.New(rand.NewPCG(seed, 7))}}
		name := fmt.Sprintf("k%d", seed)
		source := k.kernel(name)
		a, err := Allocate(t.Context(), source, Options{})
		if err != nil && strings.Contains(err.Error(), "more than there are") {
			continue
		}
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, source)
		}
		if k.warps <= 3 {
			v := check(threadsOf(t, flowIn(t, source), flowIn(t, a.PTX), nil))
			if v.illFormed+v.broken != "" {
				t.Fatalf("seed %d: %s%s\n%s", seed, v.illFormed, v.broken, source)
			}
			checked++
		}
		rewritten += a.PTX
		without += barrierLines.ReplaceAllString(source, "")
		most = max(most, a.Report.Kernels[0].Logical)
		threads = append(threads, name, fmt.Sprint(k.warps*warpSize))
		want[name] = strings.Trim(fmt.Sprint(slices.Concat(k.sums...)), "[]")
	}
	if most <= maxPhysical {
		t.Errorf("no kernel has more than %d barriers", maxPhysical)
	}
	if err := hasCUDA(); err != nil {
		t.Skipf("%d kernels of up to %d barriers rewritten, %d checked, not run: %v", len(want), most, checked, err)
	}
	for name, got := range onGPU(t, rewritten, threads) {
		if got != want[name] {
			t.Errorf("%s computed %s, want %s", name, got, want[name])
		}
	}
	differ := 0
	for name, got := range onGPU(t, without, threads) {
		if got != want[name] {
			differ++
		}
	}
	t.Logf("%d kernels of up to %d barriers; without barriers, %d compute something else", len(want), most, differ)
	if differ < len(want)/2 {
		t.Error("the comparison does not notice a wrong order")
	}
}

// hasCUDA returns an error unless this machine has CUDA's compiler and a GPU for the kernels.
func hasCUDA() error {
	if _, err := exec.LookPath("nvcc"); err != nil {
		return err
	}
	out, err := exec.Command("nvidia-smi", "--id=0", "--query-gpu=compute_cap", "--format=csv,noheader").Output()
	if err != nil {
		return err
	}
	if version, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64); err != nil || version < 8 {
		return fmt.Errorf("the GPU has the compute capability %s, and the kernels are for 8.0 and later", out)
	}
	return nil
}

// onGPU returns what kernels computed, by their names.
func onGPU(t *testing.T, ptx string, threads []string) map[string]string {
	dir := t.TempDir()
	source, binary, program := filepath.Join(dir, "kernels.ptx"), filepath.Join(dir, "kernels.cubin"), filepath.Join(dir, "run")
	if err := os.WriteFile(source, []byte(ptx), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var out []byte
	for _, command := range [][]string{
		{"nvcc", "-arch=native", "-cubin", "-o", binary, source},
		{"nvcc", "-arch=native", "-o", program, filepath.Join("testdata", "run.cu")},
		append([]string{program, binary}, threads...),
	} {
		var err error
		cmd := exec.CommandContext(ctx, command[0], command[1:]...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // a kernel that hangs occupies the GPU
		if out, err = cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", command[:2], err, out)
		}
	}
	results := map[string]string{}
	for line := range strings.Lines(string(out)) {
		name, result, _ := strings.Cut(strings.TrimSpace(line), " ")
		results[name] = result
	}
	if len(results) != len(threads)/2 {
		t.Fatalf("%d kernels ran, want %d:\n%s", len(results), len(threads)/2, out)
	}
	return results
}
