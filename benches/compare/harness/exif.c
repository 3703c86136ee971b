/* exif: the tags of a picture's camera, with those of its maker, as text, and written again. */
#include <stdint.h>
#include <stdlib.h>

#include "libexif/exif-data.h"
#include "libexif/exif-loader.h"

static void show_entry(ExifEntry *entry, void *unused) {
  char text[64];
  (void)unused;
  exif_entry_get_value(entry, text, sizeof text);
}

static void show_content(ExifContent *content, void *unused) {
  exif_content_foreach_entry(content, show_entry, unused);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ExifLoader *loader = exif_loader_new();
  if (!loader) return 0;
  exif_loader_write(loader, (unsigned char *)data, (unsigned)size);
  ExifData *exif = exif_loader_get_data(loader);
  exif_loader_unref(loader);
  if (!exif) return 0;
  exif_data_foreach_content(exif, show_content, NULL);
  ExifMnoteData *maker = exif_data_get_mnote_data(exif);
  unsigned count = maker ? exif_mnote_data_count(maker) : 0;
  for (unsigned entry = 0; entry < count && entry < 64; entry++) {
    char text[64];
    exif_mnote_data_get_value(maker, entry, text, sizeof text);
  }
  unsigned char *written = NULL;
  unsigned length = 0;
  exif_data_save_data(exif, &written, &length);
  free(written);
  exif_data_unref(exif);
  return 0;
}
