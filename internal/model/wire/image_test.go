package wire

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"strings"
	"testing"
)

// picture is an image as a data URL; noise cannot be compressed.
func picture(t *testing.T, kind string, w, h int, noise bool) string {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	r := rand.New(rand.NewPCG(1, 2))
	for y := range h {
		for x := range w {
			c := color.RGBA{uint8(x), uint8(y), 0, 255}
			if noise {
				c = color.RGBA{uint8(r.Uint32()), uint8(r.Uint32()), uint8(r.Uint32()), 255}
			}
			img.SetRGBA(x, y, c)
		}
	}
	var out bytes.Buffer
	if kind == "png" {
		how := png.Encoder{CompressionLevel: png.BestSpeed}
		if err := how.Encode(&out, img); err != nil {
			t.Fatal(err)
		}
	} else if err := jpeg.Encode(&out, img, &jpeg.Options{Quality: 100}); err != nil {
		t.Fatal(err)
	}
	return "data:image/" + kind + ";base64," + base64.StdEncoding.EncodeToString(out.Bytes())
}

func TestImagesFitTheService(t *testing.T) {
	for name, tt := range map[string]struct {
		url  string
		kind string // of what is sent; "" is the same image
	}{
		"small":         {picture(t, "png", 10, 10, false), ""},
		"wide":          {picture(t, "png", 4000, 10, false), "png"},
		"high":          {picture(t, "jpeg", 10, 3000, false), "jpeg"},
		"many bytes":    {picture(t, "png", 1200, 1200, true), "jpeg"},
		"an address":    {"https://example.test/x.png", ""},
		"no image":      {"data:image/png;base64,AAAA", ""},
		"not base64":    {"data:image/png;base64,?", ""},
		"another thing": {"data:text/plain;base64,AAAA", ""},
	} {
		got := FitImage(tt.url)
		if tt.kind == "" {
			if got != tt.url {
				t.Errorf("%s: changed to %.40s", name, got)
			}
			continue
		}
		text, ok := strings.CutPrefix(got, "data:image/"+tt.kind+";base64,")
		raw, err := base64.StdEncoding.DecodeString(text)
		size, _, bad := image.DecodeConfig(bytes.NewReader(raw))
		if !ok || err != nil || bad != nil || len(text) > maxImageText || max(size.Width, size.Height) > maxImageSide {
			t.Errorf("%s: %.40s, %d bytes, %dx%d, %v %v", name, got, len(text), size.Width, size.Height, err, bad)
		}
	}
}
