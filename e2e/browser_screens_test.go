package e2e

import (
	"os"
	"path/filepath"
	"strconv"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
)

const (
	wide   = 1280
	narrow = 390
)

var schemes = []string{"light", "dark"}

func (b *tab) resize(width, height int64) {
	b.t.Helper()
	call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1})
}

func (b *tab) scheme(name string) {
	b.t.Helper()
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: name}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
}

// shoot writes pictures of the whole page, narrow and wide, light and dark,
// when WEIR_SCREENSHOTS names a directory.
func (b *tab) shoot(name string) {
	b.t.Helper()
	dir := os.Getenv("WEIR_SCREENSHOTS")
	if dir == "" {
		return
	}
	b.front()
	defer b.resize(wide, 900)
	defer b.scheme("")
	for _, width := range []int64{wide, narrow} {
		for _, scheme := range schemes {
			b.scheme(scheme)
			b.resize(width, 800)
			b.resize(width, max(eval[int64](b, "document.scrollingElement.scrollHeight"), 800))
			b.picture(filepath.Join(dir, name+"-"+strconv.FormatInt(width, 10)+"-"+scheme+".png"))
		}
	}
}

// picture writes what the window shows.
func (b *tab) picture(file string) {
	b.t.Helper()
	if err := os.WriteFile(file, call(b, page.CaptureScreenshot, page.CaptureScreenshotParams{}).Data, 0o644); err != nil {
		b.t.Fatal(err)
	}
}
