/** The image view. */
import type { image as en } from "../en/image";

export const image: Readonly<Record<keyof typeof en, string>> = {
  "image.read": "所选查询看向的图块，叠在图片上。点击图块或词元，使它成为查询。",
  "image.readWords": "所选词元看向的图块，叠在图片上。点击词元使它成为查询，点击图块可固定它。",
  "image.readKey": "看向所选键的图块，叠在图片上。点击词元可换一个键。",
  "image.none": "这一层不读图片：它的词元没有图块网格。请选择有网格的层，或打开看图模型的记录。",
  "image.windows": "这一层的每张图只对应图片中的一个窗口，暂时还不能把窗口的图放到图片上。请在“地图”视图中查看。",
  "image.loading": "正在取权重……",
  "image.failed": "无法取得权重：{why}",
  "image.lost": "图片无法显示；图块不带图片绘出。",
  "image.plain": "记录中没有图片；图块逐行编号。",
  "image.tokens": "查询",
  "image.keyTokens": "键",
  "image.patches": "图块",
  "image.patch": "图块 {row}, {column}",
  "image.beside": "并排显示",
  "image.strength": "强度",
  "image.query": "查询 {name}",
  "image.key": "键 {name}",
  "image.weight": "{name}：权重 {weight}",
  "image.blocked": "{name}：不可看",
  "image.elsewhere": "{share} 的权重落在图片之外：",
  "image.legend": "图块的权重",
  "image.moreTokens": "……另外 {count} 个",
};
