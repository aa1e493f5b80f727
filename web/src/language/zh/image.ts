/** The image view. */
import type { image as en } from "../en/image";

export const image: Readonly<Record<keyof typeof en, string>> = {
  "image.read": "所选查询关注的图块，叠加在图片上。点击图块或词元可将其设为查询。",
  "image.readWords": "所选词元关注的图块，叠加在图片上。点击词元可将其设为查询，点击图块可固定它。",
  "image.readKey": "关注所选键的图块，叠加在图片上。点击词元可选择其他键。",
  "image.none": "这一层不读取图片：它的词元没有图块网格。请选择有网格的层，或打开视觉模型的记录。",
  "image.windows": "这一层的每张注意力图只覆盖图片的一个窗口，目前还不能放到整张图片上。请使用注意力图视图。",
  "image.loading": "正在加载权重…",
  "image.failed": "无法加载权重：{why}",
  "image.lost": "图片无法显示；图块将单独绘制。",
  "image.plain": "记录中没有图片；图块逐行编号。",
  "image.tokens": "查询",
  "image.keyTokens": "键",
  "image.patches": "图块",
  "image.patch": "图块 {row}, {column}",
  "image.beside": "并排显示",
  "image.strength": "叠加强度",
  "image.query": "查询 {name}",
  "image.key": "键 {name}",
  "image.weight": "{name}：权重 {weight}",
  "image.blocked": "{name}：已屏蔽",
  "image.elsewhere": "{share} 的权重落在图片之外：",
  "image.legend": "图块的权重",
  "image.moreTokens": "… 另外 {count} 个",
};
